// Plotly for the charts of a page, from this server, fetched once; and how they look in light and dark.
// Before each script that draws.

/** The library; where it cannot be loaded Python is told, and draws as Streamlit does. */
function plotly(path) {
  const known = (window.clqPlotly ??= {});
  known[path] ??= new Promise((resolve, reject) => {
    const begun = document.querySelector(`script[src$="/${path}"]`); // by the page's frame
    if (begun && window.Plotly) return resolve(window.Plotly);
    const base = document.querySelector('script[type="module"][src*="static/js/"]').src;
    const script = begun ?? Object.assign(document.createElement("script"), { src: new URL(`../../${path}`, base).href });
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : reject(new Error("no Plotly")));
    script.addEventListener("error", reject);
    if (!begun) document.head.append(script);
  });
  return known[path];
}

/** Put the page's colours into a chart. */
function dressed(host, layout) {
  const style = getComputedStyle(host);
  const of = (name) => style.getPropertyValue(`--st-${name}`).trim();
  const [text, ground, line] = ["text-color", "background-color", "border-color"].map(of);
  layout.font = { family: of("font"), color: text, size: 12 };
  layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
  layout.hoverlabel = { bgcolor: ground, bordercolor: line, font: { color: text } };
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: line, activecolor: text };
  return { text, ground, line, dark: /rgb\((\d+)/.exec(style.color)?.[1] > 128 }; // light text
}
