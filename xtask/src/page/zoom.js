// Zooms the time lines of a section together: by wheel, drag, keys and buttons. Without this script
// they show the whole time.
for (const lines of document.querySelectorAll(".timelines")) {
  const plots = [...lines.querySelectorAll("svg.plot")];
  const end = Math.max(...plots.map((plot) => Number(plot.dataset.end)));
  const width = (plot) => Number(plot.dataset.width);
  // One may zoom to this share of the time.
  const least = 1 / 200;
  let [from, to] = [0, 1];
  const bar = document.createElement("div");
  const range = document.createElement("output");
  const text = (share) => (share * end).toPrecision(4);
  const show = (start, size) => {
    size = Math.min(1, Math.max(least, size));
    start = Math.min(1 - size, Math.max(0, start));
    const isSame = start === from && start + size === to;
    [from, to] = [start, start + size];
    for (const plot of plots) {
      const [, y, , height] = plot.getAttribute("viewBox").split(" ");
      plot.setAttribute("viewBox", `${from * width(plot)} ${y} ${size * width(plot)} ${height}`);
      const ticks = [...plot.parentNode.querySelectorAll(".ticks text")];
      ticks.forEach((tick, at) => {
        tick.textContent = text(from + (size * at) / (ticks.length - 1));
      });
    }
    range.textContent = `${text(from)} to ${text(to)} million cycles`;
    return !isSame;
  };
  // `factor` times the part that is shown, around this share of it.
  const zoom = (factor, around) => {
    const size = Math.min(1, Math.max(least, (to - from) * factor));
    return show(from + around * (to - from - size), size);
  };
  const move = (share) => show(from + share * (to - from), to - from);
  const all = () => show(0, 1);
  const actions = [
    ["+", "Zoom in", () => zoom(0.5, 0.5)],
    ["−", "Zoom out", () => zoom(2, 0.5)],
    ["←", "Earlier", () => move(-0.25)],
    ["→", "Later", () => move(0.25)],
    ["All", "Show all of the time", all],
  ];
  for (const [label, name, action] of actions) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-label", name);
    button.addEventListener("click", action);
    bar.append(button);
  }
  bar.className = "zoom";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Zoom");
  bar.append(range);
  lines.prepend(bar);
  const keys = { "+": actions[0], "=": actions[0], "-": actions[1], ArrowLeft: actions[2],
    ArrowRight: actions[3], "0": actions[4] };
  lines.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key][2]();
  });
  for (const plot of plots) {
    const share = (event) => {
      // The place of an inner picture itself is that of what is in it.
      const chart = plot.ownerSVGElement;
      const place = chart.getBoundingClientRect();
      const scale = place.width / chart.viewBox.baseVal.width;
      const [left, width] = [plot.x, plot.width].map((it) => it.baseVal.value * scale);
      return (event.clientX - place.left - left) / width;
    };
    // At the ends the page scrolls.
    plot.addEventListener("wheel", (event) => {
      if (zoom(event.deltaY < 0 ? 0.8 : 1.25, share(event))) event.preventDefault();
    }, { passive: false });
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      let last = share(event);
      plot.setPointerCapture(event.pointerId);
      const drag = (moved) => {
        const now = share(moved);
        move(last - now);
        last = now;
      };
      plot.addEventListener("pointermove", drag);
      const release = () => plot.removeEventListener("pointermove", drag);
      plot.addEventListener("pointerup", release, { once: true });
      plot.addEventListener("pointercancel", release, { once: true });
    });
  }
  all();
}
