// Charts: of the moments since the page was opened, and of the time that was chosen.
"use strict";
(() => {
  const MOST_MOMENTS = 600;
  const HEIGHT = 150;
  const FRAME = { height: HEIGHT, padding: [10, 24, 0, 0] };
  const BELOW = 28;
  const moments = document.getElementById("charts");
  const history = document.getElementById("history");
  if (!moments || !history) return;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const axis = () => ({ stroke: colour("dim"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "11px system-ui" });
  const seriesIn = (element) => element.dataset.series.split(",").map((each) => each.split(":"));
  const two = (number) => String(number).padStart(2, "0");

  // Words

  const SPANS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const few = (number) => String(Number(number.toPrecision(number < 10 ? 2 : 3)));
  const spanOf = (seconds) => {
    const [width, unit] = SPANS.find(([width]) => seconds >= width) || [0.001, "ms"];
    return few(seconds / width) + " " + unit;
  };
  const countOf = (number) => Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(number);
  const shareOf = (share) => few(share * 100) + " %";
  const dayOf = (date) => date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const minuteOf = (date) => two(date.getHours()) + ":" + two(date.getMinutes());
  const isMidnight = (date) => date.getHours() + date.getMinutes() === 0;
  const instantOf = (seconds, step) => {
    const date = new Date(seconds * 1000);
    return step >= 86400 ? dayOf(date) : dayOf(date) + " " + minuteOf(date);
  };

  // This moment

  const seen = [];
  let live = [];

  const seenOf = (names) => [seen.map((point) => point.at), ...names.map((name) => seen.map((point) => point[name] ?? null))];

  const drawMoments = () => {
    for (const chart of live) chart.plot.destroy();
    live = [...moments.querySelectorAll(".chart")].map((element) => {
      const series = seriesIn(element);
      const names = series.map(([name]) => name);
      const times = (_, splits) => splits.map((split) => new Date(split * 1000).toTimeString().slice(0, 8));
      const plot = new uPlot({
        width: element.clientWidth,
        ...FRAME,
        cursor: { y: false },
        legend: { live: false },
        scales: { y: { range: (_, low, high) => [0, Math.max(high || 0, 1) * 1.1] } },
        axes: [{ ...axis(), space: 80, size: BELOW, values: times }, { ...axis(), size: 46 }],
        series: [{}, ...series.map(([, label, tone]) => ({ label, stroke: colour(tone), width: 1.8, points: { show: false } }))],
      }, seenOf(names), element);
      return { plot, names, element };
    });
  };

  const addMoment = () => {
    const point = JSON.parse(document.getElementById("point").getAttribute("value"));
    if (seen.length && point.at <= seen[seen.length - 1].at) return;
    seen.push(point);
    if (seen.length > MOST_MOMENTS) seen.shift();
    for (const chart of live) chart.plot.setData(seenOf(chart.names));
    moments.dataset.points = String(seen.length);
  };

  // The time that was chosen

  let told = JSON.parse(document.getElementById("series").getAttribute("value"));
  let asOf = document.getElementById("series-as-of").getAttribute("value");
  let drawn = [];

  const WHOLE = [1, 2, 5].flatMap((digit) => [...Array(10).keys()].map((power) => digit * 10 ** power)).sort((a, b) => a - b);
  const LADDER = [0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000];
  const rungs = (low, high) => {
    const first = LADDER.findLastIndex((rung) => rung <= low);
    const last = LADDER.findIndex((rung) => rung >= high);
    const end = last < 0 ? LADDER.length : last + 1;
    return LADDER.slice(Math.min(Math.max(first, 0), end - 2), end);
  };

  // A value that has none beside it is no line, so it is drawn as a dot.
  const lonely = (plot, index) => {
    const values = plot.data[index];
    return values.flatMap((value, at) => (value !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null ? [at] : []));
  };
  const line = (tone) => ({ stroke: colour(tone), width: 1.8, points: { show: false, size: 5, fill: colour(tone), filter: lonely } });

  const SHAPES = {
    // What ended in different ways stands on one another, so the whole is drawn first and its parts over it.
    stack: {
      columns: (names) => names.map((_, end) => told.at.map((_, at) => (told[names[0]][at] === null ? null : names.slice(0, end + 1).reduce((sum, name) => sum + told[name][at], 0)))).reverse(),
      look: (tone) => ({ fill: colour(tone), stroke: colour(tone), width: 0, paths: uPlot.paths.bars({ size: [1, Infinity], align: 1, gap: told.at.length > 100 ? 0 : 1 }), points: { show: false } }),
      scale: { range: (_, low, high) => [0, Math.max(high || 0, 1) * 1.1] },
      axis: { incrs: WHOLE, values: (_, splits) => splits.map(countOf) },
      word: countOf,
    },
    share: {
      columns: (names) => names.map((name) => told[name]),
      look: line,
      scale: { range: (_, low, high) => [0, Math.min(Math.max((high || 0) * 1.1, 0.05), 1)] },
      axis: { values: (_, splits) => splits.map(shareOf) },
      word: shareOf,
    },
    // From a millisecond to days, so each step is a multiple of the last.
    duration: {
      columns: (names) => names.map((name) => told[name]),
      look: line,
      scale: { distr: 3, range: (_, low, high) => { const found = rungs(low || 0.001, high || 1); return [found[0], found[found.length - 1]]; } },
      axis: { splits: (_, index, low, high) => rungs(low, high), filter: (_, splits) => splits, values: (_, splits) => splits.map(spanOf) },
      word: spanOf,
    },
  };

  const days = (_, splits, index, space, step) => splits.map((split) => {
    const date = new Date(split * 1000);
    return step >= 86400 || isMidnight(date) ? dayOf(date) : minuteOf(date);
  });

  const drawOne = (element) => {
    const shape = SHAPES[element.dataset.shape];
    const series = shape === SHAPES.stack ? seriesIn(element).reverse() : seriesIn(element);
    const names = seriesIn(element).map(([name]) => name);
    // While nobody points at a value the last one is told.
    const last = () => told[names[0]].findLastIndex((value) => value !== null);
    const word = (name) => (_, __, ___, index) => { const value = told[name][index ?? last()] ?? null; return value === null ? "–" : shape.word(value); };
    const dataOf = () => [told.at, ...shape.columns(names)];
    const plot = new uPlot({
      width: element.clientWidth,
      ...FRAME,
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: "history" }, points: { show: shape !== SHAPES.stack } },
      scales: { x: { range: () => [told.since, told.before] }, y: shape.scale },
      axes: [{ ...axis(), space: 60, size: BELOW, values: days }, { ...axis(), size: 58, ...shape.axis }],
      series: [
        { label: "At", value: (_, __, ___, index) => { const at = told.at[index ?? last()]; return at === undefined ? "–" : instantOf(at, told.step); } },
        ...series.map(([name, label, tone]) => ({ label, value: word(name), spanGaps: false, ...shape.look(tone) })),
      ],
    }, dataOf(), element);
    return { plot, element, dataOf };
  };

  const drawHistory = () => {
    for (const { plot } of drawn) plot.destroy();
    drawn = [];
    history.hidden = told.succeeded.every((value) => value === null);
    if (history.hidden) return;
    history.querySelector(".per").textContent = "per " + ({ 60: "minute", 3600: "hour" }[told.step] || spanOf(told.step));
    drawn = [...history.querySelectorAll(".chart")].map(drawOne);
    history.dataset.asOf = asOf;
  };

  const renew = async () => {
    const now = document.getElementById("series-as-of").getAttribute("value");
    if (now === asOf) return;
    asOf = now;
    const answer = await fetch(history.dataset.url).catch(() => null);
    if (!answer?.ok) return;  // the next time will do
    const step = told.step;
    told = await answer.json();
    if (history.hidden || step !== told.step) return drawHistory();
    for (const { plot, dataOf } of drawn) plot.setData(dataOf());
    history.dataset.asOf = asOf;
  };

  const KEYS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
  history.addEventListener("keydown", (event) => {
    const chart = drawn.find(({ element }) => element === event.target);
    if (!chart || !(event.key in KEYS)) return;
    event.preventDefault();
    const { plot, element } = chart;
    element.querySelector(".u-legend").setAttribute("aria-live", "polite");
    const wanted = (plot.cursor.idx ?? told.at.length) + KEYS[event.key];
    const index = Math.min(Math.max(wanted, 0), told.at.length - 1);
    plot.setCursor({ left: plot.valToPos(told.at[index], "x"), top: 1 });
  });
  history.addEventListener("focusout", () => { for (const { plot } of drawn) plot.setCursor({ left: -10, top: -10 }); });

  // A choice is followed at once; without scripts there is a button.
  const filters = document.getElementById("chart-filters");
  filters.addEventListener("change", () => filters.requestSubmit());
  filters.addEventListener("submit", () => { for (const field of filters.elements) field.disabled = !field.value; });
  window.addEventListener("pageshow", () => { for (const field of filters.elements) field.disabled = false; });

  const draw = () => { drawMoments(); drawHistory(); };
  moments.hidden = false;
  draw();
  addMoment();
  document.addEventListener("tide:page", () => { addMoment(); renew(); });
  document.addEventListener("tide:theme", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  const fit = new ResizeObserver(() => { for (const { plot, element } of [...live, ...drawn]) plot.setSize({ width: element.clientWidth, height: HEIGHT }); });
  fit.observe(moments);
  fit.observe(history);
})();
