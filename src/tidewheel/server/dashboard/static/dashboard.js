// What pages do beyond reading: they follow what happens, remember the theme, and follow a log.
"use strict";
(() => {
  const MOST_LINES = 5000;
  let live = null;
  let follower = null;

  // A page that is not looked at follows nothing: browsers allow few connections, and servers have better things to do.
  const light = (on) => {
    const lamp = document.getElementById("pulse-light");
    if (lamp) {
      lamp.classList.toggle("on", on);
      lamp.textContent = on ? "live" : "paused";
    }
  };

  const stop = () => {
    if (live) live.close();
    if (follower) follower.close();
    live = follower = null;
  };

  const followPage = () => {
    const region = document.getElementById("live");
    if (!region || !region.dataset.live) return;
    const stream = new EventSource(region.dataset.live);
    live = stream;
    stream.addEventListener("open", () => light(true));
    stream.addEventListener("error", () => light(false));
    stream.addEventListener("over", () => { stream.close(); light(false); });
    stream.addEventListener("page", (event) => {
      if (live !== stream) return;
      // Whoever is about to choose something must not have it pulled away.
      const region = document.getElementById("live");
      Idiomorph.morph(region, JSON.parse(event.data), {
        morphStyle: "innerHTML",
        ignoreActiveValue: true,
        callbacks: {
          beforeNodeMorphed: (node) => node.dataset?.kept === undefined,  // charts are drawn here, and forms filled in
          beforeAttributeUpdated: (name, node) => !(name === "checked" && node.type === "checkbox") && !(name === "open" && node.tagName === "DETAILS"),
        },
      });
      document.dispatchEvent(new CustomEvent("tide:page"));
    });
  };

  // Log

  const lineOf = (line) => {
    const item = document.createElement("li");
    item.className = line.stream + (line.level ? " l-" + line.level.toLowerCase() : "");
    const parts = [["at", line.at.slice(11, 19)], ["run", String(line.token)], ["text", line.text]];
    for (const [name, text] of parts) {
      const part = document.createElement("span");
      part.className = name;
      part.textContent = text;
      item.append(part);
    }
    return item;
  };

  // Only what is searched for is shown: every word, or phrase in quotation marks.
  const wordsIn = (searched) => (searched.toLowerCase().match(/"[^"]+"|\S+/g) || []).map((word) => word.replaceAll('"', ""));

  const filterLine = (item, words) => {
    const text = item.lastElementChild.textContent.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
  };

  const followLog = () => {
    const log = document.getElementById("log");
    if (!log || !log.dataset.follow) return;
    const stream = new EventSource(log.dataset.follow);
    follower = stream;
    stream.addEventListener("end", () => stream.close());
    stream.addEventListener("log", (event) => {
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      const item = lineOf(JSON.parse(event.data));
      filterLine(item, wordsIn(document.getElementById("log-find").value));
      log.append(item);
      // The next stream goes on after this line.
      const url = new URL(log.dataset.follow, location.href);
      url.searchParams.set("from", event.lastEventId);
      log.dataset.follow = url.pathname + url.search;
      document.getElementById("log-empty").hidden = true;
      while (log.children.length > MOST_LINES) log.firstElementChild.remove();
      if (atEnd) log.scrollTop = log.scrollHeight;
    });
  };

  const start = () => {
    stop();
    if (document.visibilityState === "visible") {
      followPage();
      followLog();
    } else {
      light(false);
    }
  };

  document.addEventListener("visibilitychange", start);
  window.addEventListener("pagehide", stop);
  window.addEventListener("pageshow", (event) => { if (event.persisted) start(); });
  document.addEventListener("htmx:afterSettle", start);

  // Theme: as the system says, until someone chooses

  const theme = document.getElementById("theme");
  const shown = () => document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const name = () => { theme.textContent = shown() === "dark" ? "Light theme" : "Dark theme"; };
  theme.hidden = false;
  name();
  theme.addEventListener("click", () => {
    const chosen = shown() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    document.cookie = "tide_theme=" + chosen + "; path=/ui; max-age=31536000; samesite=strict";
    name();
    document.dispatchEvent(new CustomEvent("tide:theme"));
  });

  const find = document.getElementById("log-find");
  if (find) find.addEventListener("input", () => {
    for (const item of document.getElementById("log").children) filterLine(item, wordsIn(find.value));
  });

  const log = document.getElementById("log");
  if (log) log.scrollTop = log.scrollHeight;

  // "/" goes to the search, as in many other places.
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    const search = document.querySelector('input[type="search"]');
    if (event.key === "/" && !typing && search) {
      event.preventDefault();
      search.focus();
    }
  });

  start();
})();
