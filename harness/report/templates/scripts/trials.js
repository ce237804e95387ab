// Every trial: a table that sorts, filters and turns pages, and a dialog for one trial.
// The data stand in this page: JSON in columns, deflated, in base64. Nothing is asked of the network.
(() => {
  "use strict";
  const NOTHING = "–";
  const $ = (id) => document.getElementById(id);
  const table = $("trials-table");
  const body = table.tBodies[0];
  const dialog = $("trial");
  const view = { size: 25, page: 0, key: "number", down: false, rows: [], order: [] };
  const details = new Map(); // chunk number → promise of its trials
  let data, columns, coded, cells, total, places, haystacks;

  // ---- the data ----

  async function inflated(text) {
    const raw = atob(text.trim());
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  async function read() {
    data = await inflated($("trials-data").textContent);
    ({ columns, coded, cells } = data);
    total = columns.cell.length;
    let count = 0; // trials with details come in the order of the trials: a trial's place among them finds its chunk
    places = data.there.map((there) => (there ? count++ : -1));
    const low = (text) => String(text).toLowerCase();
    haystacks = {
      cell: cells.map((cell) => low(cell.label + " " + cell.id)),
      ...Object.fromEntries(["status", "group", "reason"].map((name) => [name, coded[name].values.map(low)])),
    };
  }

  const number = (name, i) => (columns[name] === undefined ? null : columns[name][i]);
  const named = (name, i) => coded[name].values[coded[name].column[i]];
  const cellOf = (i) => cells[columns.cell[i]];

  async function detailOf(i) {
    if (places[i] < 0) return null;
    const chunk = Math.floor(places[i] / data.perChunk);
    if (!details.has(chunk)) details.set(chunk, inflated(document.querySelectorAll(".trials-detail")[chunk].textContent));
    return (await details.get(chunk))[places[i] % data.perChunk];
  }

  // ---- words, as the rest of the page has them ----

  function significant(value, digits = 3) {
    if (value === null) return NOTHING;
    if (value === 0) return "0";
    if (Math.abs(value) < 1e-6 || Math.abs(value) >= 1e12) return value.toExponential(digits - 1);
    const rounded = Number(value.toPrecision(digits));
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded))));
    return rounded.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
  }

  function seconds(value) {
    if (value === null) return NOTHING;
    if (value >= 1 || value === 0) return significant(value) + " s";
    return value >= 1e-3 ? significant(value * 1e3) + " ms" : significant(value * 1e6) + " µs";
  }

  function size(value) {
    if (value === null) return NOTHING;
    for (const [unit, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
      if (value >= factor) return significant(value / factor) + " " + unit;
    return value + " B";
  }

  const status = (i) => named("status", i);
  const plain = (value) => (value === null ? NOTHING : String(value));
  const shown = {
    number: (i) => String(i + 1),
    label: (i) => cellOf(i).label,
    status,
    throughput_examples_per_s: (i) => significant(number("throughput_examples_per_s", i)),
    peak_memory_bytes: (i) => size(number("peak_memory_bytes", i)),
    block: (i) => plain(number("block", i)),
    windows: (i) => plain(number("windows", i)),
  };
  const text = (key, i) => (shown[key] ? shown[key](i) : seconds(number(key, i)));

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children.filter((child) => child !== null && child !== ""));
    return made;
  }

  // ---- sorting, filtering, turning pages ----

  // What column `key` sorts by: a number for every trial; names by their place in the alphabet, unknowns as NaN.
  function ranks(key) {
    if (key === "number") return Float64Array.from({ length: total }, (_, i) => i);
    const rank = (values) => {
      const places = new Array(values.length);
      values.map((_, i) => i).sort((a, b) => collator.compare(values[a], values[b])).forEach((v, place) => (places[v] = place));
      return places;
    };
    if (key === "label") {
      const places = rank(cells.map((cell) => cell.label));
      return Float64Array.from(columns.cell, (cell) => places[cell]);
    }
    if (key === "status") {
      const places = rank(coded.status.values);
      return Float64Array.from(coded.status.column, (value) => places[value]);
    }
    return Float64Array.from({ length: total }, (_, i) => number(key, i) ?? NaN);
  }
  const collator = new Intl.Collator("en", { numeric: true });

  function sort() {
    const by = ranks(view.key);
    const known = [], unknown = []; // what is not known comes last either way
    for (let i = 0; i < total; i++) (Number.isNaN(by[i]) ? unknown : known).push(i);
    known.sort(view.down ? (a, b) => by[b] - by[a] || a - b : (a, b) => by[a] - by[b] || a - b);
    view.order = known.concat(unknown);
    for (const heading of table.tHead.rows[0].cells) {
      const sorted = heading.dataset.key === view.key;
      if (sorted) heading.setAttribute("aria-sort", view.down ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    }
  }

  // A function that says whether a trial is wanted. Names are looked at once each, not once a trial.
  function wanted() {
    const terms = $("trials-search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = terms.map((term) =>
      Object.fromEntries(Object.entries(haystacks).map(([name, values]) => [name, values.map((value) => value.includes(term))]))
    );
    const choices = [...document.querySelectorAll("#trials-filters select")].filter((select) => select.value !== "");
    const asked = (select) => data.choices[select.dataset.key][Number(select.value)];
    const chosen = choices.filter((select) => select.dataset.key !== "status").map((select) => [select.dataset.key, asked(select)]);
    const good = cells.map((cell) => chosen.every(([key, value]) => String(cell.keys[key]) === value));
    const state = choices.filter((select) => select.dataset.key === "status").map(asked);
    return (i) =>
      good[columns.cell[i]] && state.every((value) => named("status", i) === value) &&
      found.every((hit) => hit.cell[columns.cell[i]] || hit.status[coded.status.column[i]] ||
        hit.group[coded.group.column[i]] || hit.reason[coded.reason.column[i]]);
  }

  function update(resort = false) {
    const start = performance.now();
    if (resort) sort();
    view.rows = view.order.filter(wanted());
    view.page = 0;
    draw();
    const all = total.toLocaleString("en-US");
    const some = view.rows.length.toLocaleString("en-US");
    $("trials-count").textContent = view.rows.length === total ? `${all} ${total === 1 ? "trial" : "trials"}` : `${some} of ${all} trials`;
    performance.measure(resort ? "trials-sort" : "trials-filter", { start, end: performance.now() });
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(view.rows.length / view.size));
    view.page = Math.min(Math.max(0, view.page), pages - 1);
    const keys = [...table.tHead.rows[0].cells].map((heading) => [heading.dataset.key, heading.className]);
    const from = view.page * view.size;
    body.replaceChildren(...view.rows.slice(from, from + view.size).map((i) => row(i, keys)));
    if (!view.rows.length)
      body.append(element("tr", {}, element("td", { colspan: keys.length, class: "words" }, "No trial matches.")));
    $("trials-page").textContent = `page ${page(view.page + 1)} of ${page(pages)}`;
    paper();
    for (const button of $("trials-pager").querySelectorAll("button"))
      button.disabled = /first|previous/.test(button.dataset.go) ? view.page === 0 : view.page === pages - 1;
  }
  const page = (value) => value.toLocaleString("en-US");

  // Paper has the rows of one page of the table: it says which, and what they were chosen by.
  function paper() {
    const [from, to, found] = [view.page * view.size + 1, Math.min((view.page + 1) * view.size, view.rows.length), view.rows.length];
    const by = view.key === "number" ? "number" : [...table.tHead.rows[0].cells].find((cell) => cell.dataset.key === view.key).textContent;
    const rest = found === total ? "" : `, which search and choices left of ${page(total)}`;
    $("trials-paper").textContent =
      (found ? `Rows ${page(from)} to ${page(to)} of ${page(found)}` : `None of ${page(total)} rows`) + `${rest}, sorted by ${by}` +
      `${view.down ? ", downwards" : ""}. All ${page(total)} trials are in the file that is named below.`;
  }

  function row(i, keys) {
    const made = element("tr", { "data-trial": i });
    for (const [key, kind] of keys) {
      const words = text(key, i);
      if (key === "number") {
        const button = element("button", { type: "button", class: "open", "aria-haspopup": "dialog" }, words);
        button.setAttribute("aria-label", `Trial ${words}: open`);
        made.append(element("td", { class: "number" }, button));
      } else if (key === "label") made.append(element("th", words.length > 60 ? { scope: "row", class: "long" } : { scope: "row" }, words));
      else made.append(element("td", { class: kind || "words" }, words));
    }
    return made;
  }

  // ---- CSV of what is filtered ----

  const field = (value) => {
    const given = value === null || value === undefined ? "" : String(value);
    // what a spreadsheet would work out begins with an apostrophe, as in the export
    const words = /^\s*([=@]|[+-](?!\d[^(|!=@]*$))/.test(given) && typeof value === "string" ? "'" + given : given;
    return /[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
  };

  function csv() {
    const keys = Object.keys(cells[0].keys);
    const numbers = Object.keys(columns).filter((name) => name !== "cell" && name !== "started");
    const names = ["status", "phase", "reason", "group", "side", "interleaving"];
    const head = ["trial", "cell_id", "label", ...keys.map((key) => "cell." + key), ...names, "started_utc", ...numbers];
    const fixed = cells.map((cell) => [cell.id, cell.label, ...keys.map((key) => cell.keys[key])].map(field).join(","));
    const lines = view.rows.map((i) =>
      [i + 1, fixed[columns.cell[i]], ...names.map((name) => field(named(name, i))), field(started(i)),
        ...numbers.map((name) => field(columns[name][i]))].join(",")
    );
    return [head.join(","), ...lines].join("\n") + "\n";
  }
  const started = (i) => (number("started", i) === null ? null : new Date(columns.started[i] * 1000).toISOString().replace(".000", ""));

  function download() {
    const link = element("a", { download: `${data.run}-trials.csv` });
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  async function copy(words, button) {
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(words);
    } catch {
      const area = element("textarea", { "aria-hidden": "true" }); // where the browser gives a file no clipboard
      area.value = words;
      (dialog.open ? dialog : document.body).append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = said), 1500);
  }

  // ---- one trial ----

  async function open(i) {
    const close = element("button", { type: "button", class: "close" }, "Close");
    close.addEventListener("click", () => dialog.close());
    const detail = await detailOf(i);
    dialog.replaceChildren(close, ...window.harnessTrial({ i, detail, data, columns, coded, cellOf, number, named, element, significant, seconds, size, status, started, copy }));
    dialog.dataset.trial = i + 1;
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    history.replaceState(null, "", `#trial-${i + 1}`);
  }

  function fromAddress() {
    const asked = /^#trial-(\d+)$/.exec(location.hash);
    if (asked && asked[1] >= 1 && asked[1] <= total) open(asked[1] - 1);
  }

  function listen() {
    const form = $("trials-filters");
    form.addEventListener("input", () => update());
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(update));
    for (const heading of table.tHead.rows[0].cells) {
      const button = element("button", { type: "button", class: "sort" }, heading.textContent);
      button.addEventListener("click", () => {
        view.down = view.key === heading.dataset.key && !view.down;
        view.key = heading.dataset.key;
        update(true);
      });
      heading.replaceChildren(button);
    }
    body.addEventListener("click", (event) => {
      const at = event.target.closest("tr[data-trial]");
      // who selects text in a row does not mean to open it; a button means it always
      if (at && (event.target.closest("button") || !String(getSelection()))) open(Number(at.dataset.trial));
    });
    $("trials-pager").addEventListener("click", ({ target }) => {
      const to = { first: 0, previous: view.page - 1, next: view.page + 1, last: Infinity }[target.dataset.go];
      if (to === undefined) return;
      view.page = Math.min(to, Math.ceil(view.rows.length / view.size));
      draw();
    });
    $("trials-size").addEventListener("change", ({ target }) => {
      view.size = Number(target.value);
      draw();
    });
    $("trials-copy").addEventListener("click", ({ target }) => copy(csv(), target));
    $("trials-download").addEventListener("click", download);
    dialog.addEventListener("close", () => history.replaceState(null, "", "#trials"));
    addEventListener("hashchange", fromAddress);
  }

  async function start() {
    performance.mark("trials-start");
    await read();
    listen();
    update(true);
    $("trials-static").hidden = true;
    for (const id of ["trials-filters", "trials-bar", "trials-pager"]) $(id).hidden = false;
    performance.mark("trials-ready");
    fromAddress();
  }

  start().catch((error) => {
    $("trials-static").textContent += ` (This browser could not read the data in this page: ${error.message}.)`;
  });
})();
