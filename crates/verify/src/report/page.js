// Zooming and moving: the drawing's own units are microseconds, so a view is a begin and a width.
"use strict";
(() => {
  const chart = document.getElementById("chart");
  const bars = document.getElementById("bars");
  const axis = document.getElementById("axis");
  const signs = [...document.querySelectorAll("#signs b")];
  const all = Number(chart.dataset.length);
  const height = bars.viewBox.baseVal.height;
  let from = 0;
  let width = all;

  const told = (us, step) => {
    if (step >= 1e6) return (us / 1e6).toFixed(0) + " s";
    if (step >= 1e3) return (us / 1e3).toFixed(0) + " ms";
    return us.toFixed(0) + " µs";
  };

  const show = () => {
    width = Math.min(Math.max(width, Math.min(100, all)), all);
    from = Math.min(Math.max(from, 0), all - width);
    bars.setAttribute("viewBox", `${from} 0 ${width} ${height}`);
    for (const sign of signs) {
      const at = (Number(sign.dataset.at) - from) / width;
      sign.style.display = at < 0 || at > 1 ? "none" : "";
      sign.style.left = at * 100 + "%";
    }
    const rough = 10 ** Math.floor(Math.log10(width / 8 || 1));
    const step = Math.max(1, [1, 2, 5, 10].map((n) => n * rough).find((n) => width / n <= 10));
    axis.replaceChildren();
    for (let at = Math.ceil(from / step) * step; at <= from + width; at += step) {
      const tick = document.createElement("span");
      tick.textContent = told(at, step);
      tick.style.left = ((at - from) / width) * 100 + "%";
      axis.append(tick);
    }
  };

  const place = (event) => {
    const box = bars.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  };

  const area = bars.parentElement;
  area.addEventListener("wheel", (event) => {
    event.preventDefault();
    const share = place(event);
    const at = from + share * width;
    width = Math.min(all, width * 1.3 ** Math.sign(event.deltaY));
    from = at - share * width;
    show();
  }, { passive: false });

  let grabbed = null;
  area.addEventListener("pointerdown", (event) => { grabbed = { share: place(event), from }; });
  addEventListener("pointermove", (event) => {
    if (!grabbed) return;
    from = grabbed.from - (place(event) - grabbed.share) * width;
    show();
  });
  addEventListener("pointerup", () => { grabbed = null; });
  area.addEventListener("dblclick", () => { from = 0; width = all; show(); });
  show();
})();
