// Charts of the last minutes: what the server told before, and from then on what the page hears.
"use strict";
(() => {
  const KEPT = 600;
  const place = document.getElementById("charts");
  if (!place) return;
  const points = JSON.parse(document.getElementById("history").getAttribute("value"));
  let charts = [];

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  const dataOf = (names) => [points.map((point) => point.at), ...names.map((name) => points.map((point) => point[name] ?? null))];

  const times = (_, moments) => moments.map((moment) => new Date(moment * 1000).toTimeString().slice(0, 8));

  const draw = () => {
    for (const chart of charts) chart.plot.destroy();
    charts = [...place.querySelectorAll(".chart")].map((element) => {
      const series = element.dataset.series.split(",").map((each) => each.split(":"));
      const names = series.map(([name]) => name);
      const axis = { stroke: colour("dim"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "11px system-ui" };
      const plot = new uPlot({
        width: element.clientWidth,
        height: 150,
        cursor: { y: false },
        legend: { live: false },
        scales: { y: { range: (_, low, high) => [0, Math.max(high || 0, 1) * 1.1] } },
        axes: [{ ...axis, space: 80, values: times }, { ...axis, size: 46 }],
        series: [{}, ...series.map(([, label, tone]) => ({ label, stroke: colour(tone), width: 1.8, points: { show: false } }))],
      }, dataOf(names), element);
      return { plot, names, element };
    });
  };

  const add = () => {
    const element = document.getElementById("point");
    if (!element) return;
    const point = JSON.parse(element.getAttribute("value"));
    if (points.length && point.at <= points[points.length - 1].at) return;
    points.push(point);
    if (points.length > KEPT) points.shift();
    for (const chart of charts) chart.plot.setData(dataOf(chart.names));
    place.dataset.points = String(points.length);
  };

  place.hidden = false;
  draw();
  add();
  document.addEventListener("tide:page", add);
  document.addEventListener("tide:theme", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(() => { for (const { plot, element } of charts) plot.setSize({ width: element.clientWidth, height: 150 }); }).observe(place);
})();
