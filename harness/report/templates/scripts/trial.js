// One trial, as the dialog of the table of every trial shows it. Names and texts become text, never markup.
"use strict";
window.harnessTrial = ({ i, detail, data, coded, cellOf, number, named, element, significant, seconds, size, status, started, copy }) => {
  // as wide as the dialog will be: on a phone a picture that is made smaller has letters that nobody can read
  const WIDTH = Math.max(280, Math.min(640, document.documentElement.clientWidth * 0.94 - 44));
  const HEIGHT = 200, LEFT = 62, BOTTOM = 34, TOP = 10, RIGHT = 8;
  const PHASES = {
    start_s: "process start", build_s: "build", first_step_s: "first step", check_s: "checks", warmup_s: "warm-up",
    steady_s: "steady state", alone_s: "workers alone", waiting_s: "waiting for its turn", exit_s: "exit",
  };
  const CHECKS = {
    reduction: "the sum over replicas is exact", update: "one step gives the reference's weights",
    replicas_agree: "replicas agree afterwards", loss_finite: "the loss is finite",
    late: "what was proved at first holds after the last window", loss: "the loss is the mean over the global batch",
    losses_agree: "losses are those of the step uncompiled", own_check: "the step's own check",
    batches: "batches have the size, shapes and types asked for", examples: "a pass has each example once, unchanged",
    order: "examples come in the order of the seed", input: "each process was fed what the seed gives it",
  };
  const cell = cellOf(i);
  const heading = (words) => element("h3", {}, words);

  function facts(pairs) {
    const list = element("dl", { class: "facts" });
    for (const [name, value] of pairs) if (value !== null && value !== "") list.append(element("dt", {}, name), element("dd", {}, String(value)));
    return list;
  }

  function drawing(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // ---- windows ----

  function quantile(sorted, share) {
    const at = share * (sorted.length - 1), below = Math.floor(at);
    return sorted[below] + (at - below) * (sorted[Math.min(below + 1, sorted.length - 1)] - sorted[below]);
  }

  function windowsOf({ u, s, c, K, m, r, k }) {
    const step = s.map((grains) => (grains * u) / K);
    const measured = step.slice(m);
    const sorted = [...measured].sort((a, b) => a - b);
    const rounds = Array.isArray(r) ? r : s.map((_, at) => r + at);
    const parts = [heading("Windows")];
    const mean = measured.reduce((sum, value) => sum + value, 0) / measured.length;
    const words = measured.length
      ? `${measured.length} measured windows of ${K} ${K === 1 ? "step" : "steps"} after ${m} of warm-up. Step time: mean ${seconds(mean)}, ` +
        `p50 ${seconds(quantile(sorted, 0.5))}, p95 ${seconds(quantile(sorted, 0.95))}, p99 ${seconds(quantile(sorted, 0.99))}, ` +
        `slowest ${seconds(sorted[sorted.length - 1])}.`
      : `${s.length} windows, all of them warm-up.`;
    parts.push(chart(step, m, measured.length ? mean : null, k ? k.map((worker) => worker.map((grains) => (grains * u) / K)) : [], words));
    const used = (at) => (at < m ? "warm-up" : "measured");
    const times = s.map((grains, at) => [grains * u, c[at] * u, step[at], ...(k || []).map((worker) => worker[at] * u)]);
    const csv = csvOf(["window", "round", "used", "wall_s", "processor_s", "step_s", ...(k || []).map((_, worker) => `worker_${worker}_wall_s`)],
      times.map((values, at) => [at + 1, rounds[at], used(at), ...values.map((value) => (Number.isFinite(value) ? Number(value.toPrecision(6)) : ""))]));
    parts.push(element("p", {}, words + (k ? ` Thin lines: each of ${k.length} workers.` : "") + " ", csv));
    parts.push(folded("Every window", () => {
      const rows = s.map((grains, at) =>
        element("tr", {}, ...[at + 1, rounds[at], used(at), seconds(grains * u), seconds(c[at] * u), seconds(step[at])].map((value) =>
          element("td", { class: "number" }, String(value))))
      );
      const names = ["window", "round", "used", "wall", "processor", "step"].map((name) => element("th", { scope: "col", class: "number" }, name));
      const list = element("table", {}, element("thead", {}, element("tr", {}, ...names)), element("tbody", {}, ...rows));
      return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Every window" }, list);
    }));
    return parts;
  }

  // What is folded is made when it is unfolded: most trials are looked at for a second.
  function folded(words, make) {
    const summary = element("summary", {}, words), details = element("details", {}, summary);
    const fill = () => details.children.length === 1 && details.append(make());
    summary.addEventListener("click", fill);
    details.addEventListener("toggle", fill); // whatever else unfolds it
    return details;
  }

  // Numbers and our own words only: nothing in them needs a quote.
  function csvOf(names, rows) {
    const text = [names, ...rows].map((row) => row.join(",")).join("\n") + "\n";
    return element("a", { class: "csv", download: `trial-${i + 1}-windows.csv`, href: "data:text/csv;charset=utf-8," + encodeURIComponent(text) },
      "CSV", element("span", { class: "unseen" }, " of this trial's windows"));
  }

  function chart(step, measuredFrom, mean, workers, words) {
    const top = [step, ...workers].flat().reduce((most, value) => Math.max(most, value)), low = step.reduce((least, value) => Math.min(least, value));
    const floor = low > top / 2 ? low - (top - low) * 0.3 - top * 1e-3 : 0; // near each other: look closely
    const x = (at) => LEFT + ((at + 0.5) * (WIDTH - LEFT - RIGHT)) / step.length;
    const y = (value) => TOP + ((top - value) * (HEIGHT - TOP - BOTTOM)) / (top - floor || 1);
    const svg = drawing("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Step time of each window. " + words });
    for (const value of [floor, (floor + top) / 2, top]) {
      svg.append(drawing("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), stroke: "var(--grid)" }));
      svg.append(drawing("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, seconds(value)));
    }
    if (mean !== null)
      svg.append(drawing("line", { x1: x(measuredFrom - 0.5), x2: WIDTH - RIGHT, y1: y(mean), y2: y(mean), stroke: "var(--muted)", "stroke-dasharray": "5 3" }));
    workers.forEach((times, worker) =>
      svg.append(drawing("polyline", { points: times.map((value, at) => `${x(at)},${y(value)}`).join(" "), fill: "none", stroke: `var(--s${(worker + 1) % 8})` })));
    step.forEach((value, at) =>
      svg.append(drawing("circle", { cx: x(at), cy: y(value), r: 3, fill: at < measuredFrom ? "var(--paper)" : "var(--s0)", stroke: "var(--s0)" })));
    const under = [[1, "start"], [step.length, "end"]].map(([at, anchor]) =>
      drawing("text", { x: x(at - 1), y: HEIGHT - 16, "text-anchor": anchor === "end" && step.length > 1 ? "end" : "middle" }, String(at)));
    svg.append(...under, drawing("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 3, "text-anchor": "middle" },
      "window; hollow: warm-up" + (mean === null ? "" : "; dashed: mean")));
    return svg;
  }

  // ---- phases, checks, what ran, how to repeat it ----

  function phases() {
    const known = Object.keys(PHASES).map((name) => [PHASES[name], number(name, i)]).filter(([, value]) => value !== null);
    if (!known.length) return [];
    const own = ([name]) => name !== PHASES.waiting_s; // waiting is the others' time, and would dwarf the rest
    const longest = Math.max(...known.filter(own).map(([, value]) => value)) || 1;
    const rows = known.map(([name, value]) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "number" }, seconds(value)),
        element("td", { class: "bar" }, own([name]) ? element("span", { style: `width:${(100 * value) / longest}%` }) : "not drawn: the others' time")));
    return [heading("Phases"), element("table", { class: "phases" }, element("tbody", {}, ...rows))];
  }

  function checks() {
    const values = named("checks", i);
    const items = coded.checks.names.map((name, at) => [name, values[at]]).filter(([name]) => name !== "gate")
      .filter(([, value]) => value !== null)
      .map(([name, value]) => element("li", {}, `${value ? "passed" : "FAILED"}: ${CHECKS[name] || name}`));
    const applied = number("updates_applied", i), scheduled = number("updates_scheduled", i);
    if (applied !== null) items.push(element("li", {}, `${applied === scheduled ? "passed" : "FAILED"}: ${applied} updates applied of ${scheduled} scheduled`));
    const error = number("update_error", i);
    if (error !== null) items.push(element("li", {}, `largest difference of the update: ${significant(error)} of what is allowed`));
    for (const [name, words] of Object.entries((detail && detail.d) || {})) items.push(element("li", {}, `${name}: ${words}`));
    return [heading("Checks"), items.length ? element("ul", {}, ...items) : element("p", {}, "No check was reached.")];
  }

  function ran() {
    const [words, fingerprint] = named("executed", i);
    const [devices, physical, shared, intra, inter] = named("resources", i);
    const machine = document.querySelector("#environment dl");
    const environment = machine ? [folded("Machine and software of the run", () => machine.cloneNode(true))] : [];
    return [
      heading("What ran, and on what"),
      facts([["one step", words], ["fingerprint", fingerprint], ["devices", devices], ["processors", devices && physical],
        ["shared by replicas", devices && (shared ? "yes: overhead only, not hardware scaling" : "no")],
        ["threads", devices && `${intra} intra-op, ${inter} inter-op (0: TensorFlow's choice)`]]),
      ...environment,
      ...(detail && detail.t ? [facts([["trace", detail.t]])] : []),
      ...(detail && detail.m ? [facts(detail.m.map(([name, phase, reason]) => [name, [phase, reason].filter(Boolean).join(": ") || "ended well"]))] : []),
    ];
  }

  function repeat() {
    if (cell.command === null)
      return [heading("Repeat it"), element("p", {}, "No flags of sweep say this cell: the run's spec repeats it.")];
    const button = element("button", { type: "button" }, "Copy");
    button.addEventListener("click", () => copy(cell.command, button));
    return [heading("Repeat it"), element("pre", { tabindex: 0, id: "trial-command" }, cell.command), button,
      element("p", { class: "note" }, "One trial of this cell, and of its base case beside it.")];
  }

  const windows = detail && detail.w ? windowsOf(detail.w)
    : number("windows", i) === null ? [] : [heading("Windows"),
      element("p", {}, `They are not in this page, which would be too large with all of them, but in line ${i + 1} of ${data.records}.`)];
  const reason = named("reason", i);
  const evidence = detail && detail.e ? [element("details", {}, element("summary", {}, "Stacks and output"), element("pre", { tabindex: 0 }, detail.e))] : [];
  return [
    element("h2", { id: "trial-heading" }, `Trial ${i + 1}: ${cell.label}`),
    element("p", { class: "status" }, status(i) + (named("phase", i) ? ` in phase '${named("phase", i)}'` : "") + (reason ? `: ${reason}` : "")),
    ...evidence,
    facts([["examples/s", number("throughput_examples_per_s", i) && significant(number("throughput_examples_per_s", i), 4)],
      ["step", number("step_time_s", i) && seconds(number("step_time_s", i))],
      ["CPU per example", number("cpu_seconds_per_example", i) && seconds(number("cpu_seconds_per_example", i))],
      ["peak memory", number("peak_memory_bytes", i) && size(number("peak_memory_bytes", i))],
      ["peak device memory", number("peak_device_memory_bytes", i) && size(number("peak_device_memory_bytes", i))],
      ["final loss", number("final_loss", i) && significant(number("final_loss", i), 4)],
      ["place", `block ${number("block", i)}, group ${named("group", i)}, started as number ${number("order", i) + 1} of it, attempt ${number("attempt", i)}, interleaving: ${named("interleaving", i)}`],
      ["side", named("side", i)], ["started", started(i)], ["cell", cell.id]]),
    ...windows, ...phases(), ...checks(), ...ran(), ...repeat(),
  ];
};
