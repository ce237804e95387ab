// A table that has more columns than room says so (`.cut`), also after it was unfolded or the window has another width.
(() => {
  const cut = ({ target }) => target.classList.toggle("cut", target.scrollWidth > target.clientWidth);
  const seen = new ResizeObserver((entries) => entries.forEach(cut));
  for (const frame of document.querySelectorAll(".scroll:has(> table)")) seen.observe(frame);
})();
