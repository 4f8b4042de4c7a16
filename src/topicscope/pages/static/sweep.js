import { floatsOf } from "./decoding.js";
import { make } from "./making.js";

// A map of any measure of a sweep over any two axes, and the curves of the points that are clicked.
// `fetchCurves` brings the curves of some points, where the page does not have them all; `whenChosen` gets the points
// that are chosen, by their numbers. What the map opens with may stand in the data.
export const drawSweep = (root, fetchCurves = null, whenChosen = () => {}) => {
  const get = (id) => root.querySelector(`#${id}`);
  const { axes, measures, words, meanings, rows, curvePanels, palette, ...data } = JSON.parse(get("data").textContent);
  const curves = data.curves ?? {}, first = data.chosen ?? {};
  const names = Object.keys(axes);
  for (const panels of root.querySelectorAll(".panels[data-columns]")) {
    panels.style.setProperty("--columns", panels.dataset.columns);
  }
  const config = { responsive: true, displayModeBar: false };
  const isMissing = (value) => value === null || value === undefined;
  const short = (value) =>
    typeof value === "number" ? String(Number(value.toPrecision(4))) : isMissing(value) ? "–" : String(value);
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  const plain = (text) => short(text).replace(/[&<>]/g, (sign) => entities[sign]).replaceAll("%{", "&#37;{");
  const layout = (x, y) => ({
    xaxis: { title: { text: plain(x), standoff: 8 }, automargin: true, ...(x === "step" ? {} : { type: "category" }) },
    yaxis: { title: { text: plain(y), standoff: 8 }, automargin: true },
    margin: { l: 44, r: 8, t: 8, b: 40 }, font: { size: 13 }, hovermode: "closest",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    alt: `${short(y)} against ${short(x)}; the table below has the numbers of the chosen points`,
  });
  const addPlot = (parent, title, kind, traces, shape) => {
    const panel = make("div", "", { class: "panel" }), plot = make("div", "", { class: `plot ${kind}` });
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", `${title ? `${title}: ` : ""}${shape.alt}`);
    panel.append(make("p", title, { class: "panel-title" }), plot);
    parent.append(panel);
    Plotly.newPlot(plot, traces, shape, config);
    return plot;
  };

  const offer = (id, values, chosen) => {
    for (const value of values) get(id).append(new Option(value, value, false, value === chosen));
  };
  const bySize = names.filter((name) => name !== "seed").sort((a, b) => axes[b].length - axes[a].length);
  offer("measure", measures, first.measure ?? measures[0]);
  offer("across", names.length ? names : ["-"], first.across ?? bySize[0] ?? names[0]);
  offer("up", ["-", ...names], first.up ?? bySize[1] ?? "-");

  // Where a point lies; of several points (`among`) only the axes in which they differ.
  const where = (row, among) => {
    const differs = (i) => !among?.every((j) => rows[j].at[i] === row.at[i]);
    return names.flatMap((name, i) => (differs(i) ? [`${name}=${short(axes[name][row.at[i]])}`] : [])).join(", ");
  };
  if (rows.length <= 5000) {
    const label = (row) => `${where(row) || row.point}: ${row.state}`;
    rows.forEach((row, i) => get("point").append(new Option(label(row), i)));
  }

  const average = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);
  const mostFrequent = (values) => {
    const counts = new Map();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
  };

  // By panel title: the points of each cell, and the cells' values.
  const panelsOf = (measure, across, up) => {
    const place = (name) => names.indexOf(name);
    const index = (row, name) => (place(name) < 0 ? 0 : row.at[place(name)]);
    const rest = names.filter((name) => ![across, up, "seed"].includes(name) && axes[name].length > 1);
    const facets = new Map();
    rows.forEach((row, i) => {
      const title = rest.map((name) => `${name} ${short(axes[name][row.at[place(name)]])}`).join(", ");
      facets.set(title, [...(facets.get(title) ?? []), i]);
    });
    return [...facets].map(([title, members]) => {
      const cells = (axes[up] ?? ["-"]).map(() => (axes[across] ?? ["-"]).map(() => []));
      for (const i of members) cells[index(rows[i], up)][index(rows[i], across)].push(i);
      const middle = (group) => {
        const values = group.map((i) => rows[i].measures[measure]).filter((value) => !isMissing(value));
        return words[measure] ? mostFrequent(values) : average(values);
      };
      return { title, cells, shown: cells.map((line) => line.map(middle)) };
    });
  };

  // How a measure is coloured: z of a value, and plotly's colour scale. Numbers over a wide range by their logarithm.
  const colouring = (named, numbers) => {
    if (named) {
      const steps = named.flatMap(({ colour }, i) => [[i / named.length, colour], [(i + 1) / named.length, colour]]);
      const z = (value) => (value === null ? null : named.findIndex(({ name }) => name === value));
      return [z, { colorscale: steps, zmin: -0.5, zmax: named.length - 0.5, showscale: false }];
    }
    const low = Math.min(...numbers), high = Math.max(...numbers);
    const isLog = numbers.length > 0 && low > 0 && high > 100 * low;
    const z = (value) => (value !== null && isLog ? Math.log10(value) : value);
    const bar = { thickness: 11, outlinewidth: 0, ...(isLog ? { tickprefix: "10^" } : {}) };
    return [z, { colorscale: "Cividis", ...(numbers.length ? { zmin: z(low), zmax: z(high) } : {}), colorbar: bar }];
  };

  const drawMap = () => {
    const measure = get("measure").value, across = get("across").value;
    const up = get("up").value === across ? "-" : get("up").value;
    const beside = measures.includes(`predicted_${measure}`) ? `predicted_${measure}` : null;
    const named = words[beside] ?? words[measure], xs = axes[across] ?? ["-"], ys = axes[up] ?? ["-"];
    get("keys").replaceChildren(...(named ?? []).map(({ name, colour }) => {
      const item = make("li"), swatch = make("span", "", { class: "swatch" });
      swatch.style.background = colour;
      item.append(swatch, name);
      return item;
    }));
    const predicted = beside ? panelsOf(beside, across, up) : [];
    const panels = panelsOf(measure, across, up).flatMap((one, i) => (beside
      ? [[one, "measured"], [predicted[i], "predicted"]].map(([panel, what]) =>
        ({ ...panel, title: [panel.title, what].filter(Boolean).join(", ") })) : [one]));
    get("panels").style.setProperty("--columns", beside ? 2 : get("panels").dataset.columns);
    const numbers = panels.flatMap(({ shown }) => shown.flat()).filter((value) => typeof value === "number");
    const occurring = new Set(panels.flatMap(({ shown }) => shown.flat()));
    get("meanings").replaceChildren(...Object.entries(meanings[measure] ?? {}).filter(([word]) => occurring.has(word))
      .map(([word, meaning]) => make("li", `${word}: ${meaning}`)));
    const [z, colours] = colouring(named, numbers);
    get("panels").replaceChildren();
    for (const { title, cells, shown } of panels) {
      const lines = (value, x, y) => [
        `${plain(across)}: ${plain(xs[x])}`, `${plain(up)}: ${plain(ys[y])}`, `${plain(measure)}: ${plain(value)}`,
        `${cells[y][x].length} point(s), ${cells[y][x].filter((i) => rows[i].state !== "done").length} not done`,
      ];
      const heat = {
        type: "heatmap", x: xs.map(plain), y: ys.map(plain), xgap: 1, ygap: 1, ...colours,
        z: shown.map((line) => line.map(z)), hovertemplate: "%{text}<extra></extra>",
        text: shown.map((line, y) => line.map((value, x) => lines(value, x, y).join("<br>"))),
      };
      const shape = layout(across, up === "-" ? "" : up);
      shape.yaxis.type = "category";
      shape.alt = `map of ${measure}, ${across} to the right, ${up} upwards; the list of points below has every cell`;
      for (const [axis, steps] of [[shape.xaxis, xs], [shape.yaxis, ys]]) {
        const order = { categoryorder: "array", categoryarray: steps.map(plain) };
        Object.assign(axis, order, { range: [-0.5, steps.length - 0.5], showgrid: false });
      }
      if (shown.flat().every((value) => value === null)) {
        heat.showscale = false;
        const place = { xref: "paper", yref: "paper", x: 0.5, y: 0.5 };
        shape.annotations = [{ text: "nothing to show", showarrow: false, ...place }];
      }
      const plot = addPlot(get("panels"), title, "map", [heat], shape);
      plot.on("plotly_click", ({ points: [{ pointIndex: [y, x] }] }) => choose(cells[y][x]));
    }
  };

  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const unpack = (text) => Array.from(floatsOf(text), (value) => (Number.isFinite(value) ? value : null));
  const drawCurves = (group) => {
    get("curves").replaceChildren();
    if (!fetchCurves && group.some((i) => rows[i].state === "done") && !group.some((i) => curves[i])) {
      get("curves").append(make("p", "The curves of this cell are not in this page; its folder has them."));
    }
    const chosen = group.filter((i) => curves[i]).slice(0, 8);
    for (const [title, start] of Object.entries(curvePanels)) {
      const traces = chosen.flatMap((i, k) => {
        const shown = Object.keys(curves[i]).filter((name) => name.startsWith(start));
        return shown.map((name, j) => {
          const y = unpack(curves[i][name]), x = curves[i].step ? unpack(curves[i].step) : y.map((_, step) => step);
          const [known, color] = data.curveNames[name] ?? [name, palette[j % palette.length]];
          const label = plain(chosen.length > 1 ? `${known} (${where(rows[i], group)})` : known);
          const line = { color, dash: DASHES[k % 4], width: 1.8 };
          return { type: "scatter", mode: "lines", x, y, name: label, line };
        });
      });
      if (traces.length) addPlot(get("curves"), title, "curve", traces, layout("step", title));
    }
  };
  let latest = 0, chosenGroup = [];
  const choose = async (group) => {
    chosenGroup = group;
    const asked = latest += 1, missing = group.slice(0, 8).filter((i) => !curves[i]);
    get("point").value = group.length === 1 ? group[0] : "";
    showNumbers(group);
    whenChosen(group);
    try {
      if (fetchCurves && missing.length) Object.assign(curves, await fetchCurves(missing));
      if (asked === latest) drawCurves(group);
    } catch (error) {
      if (asked === latest) get("curves").replaceChildren(make("p", `The curves could not be read: ${error.message}`));
    }
  };
  const showNumbers = (group) => {
    const [top, body, head] = ["thead", "tbody", "tr"].map((tag) => make(tag));
    head.append(...["point", ...names, ...measures, "error"].map((name) => make("th", name, { scope: "col" })));
    top.append(head);
    for (const i of group) {
      const line = make("tr"), row = rows[i];
      const places = row.at.map((place, k) => axes[names[k]][place]);
      const cells = [...places, ...measures.map((name) => row.measures[name]), row.error];
      line.append(make("th", row.point, { scope: "row" }), ...cells.map((value) => make("td", short(value))));
      body.append(line);
    }
    get("numbers").replaceChildren(top, body);
  };

  for (const id of ["measure", "across", "up"]) get(id).addEventListener("change", drawMap);
  get("point").addEventListener("change", ({ target: { value } }) => { if (value !== "") choose([Number(value)]); });
  drawMap();
  if (first.points?.length) choose(first.points);
  return {
    ignored: first.ignored ?? [],
    // More measures of every row, in the order of the rows; `colours` has the words of some. A measure 'predicted_X' is
    // shown beside X.
    addMeasures: (more, colours = {}) => {
      const isKnown = (name) => more.some((values) => !isMissing(values[name])); // of any point
      const fresh = Object.keys(more[0] ?? {}).filter((name) => !measures.includes(name) && isKnown(name));
      more.forEach((values, i) => Object.assign(rows[i].measures, values));
      for (const name of fresh) {
        const found = [...new Set(more.map((values) => values[name]).filter((value) => typeof value === "string"))];
        const colour = (word, i) => colours[name]?.[word] ?? palette[i % palette.length];
        if (found.length) words[name] = Object.keys(colours[name] ?? Object.fromEntries(found.map((word) => [word, 0])))
          .map((word, i) => ({ name: word, colour: colour(word, i) }));
      }
      const isUntouched = get("measure").value === measures[0];
      measures.push(...fresh);
      offer("measure", fresh, isUntouched ? first.measure : null);
      drawMap();
      if (chosenGroup.length) showNumbers(chosenGroup);
    },
  };
};
