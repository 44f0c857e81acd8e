#include "tools/attention_page.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

using Json = nlohmann::ordered_json;

// Weights are shown in ten-thousandths: four decimals.
constexpr float kUnit = 10000.0f;

// JSON that no text can leave, neither as a script's end nor as a comment.
std::string ForScript(const Json& json) {
  return absl::StrReplaceAll(
      json.dump(-1, ' ', true, Json::error_handler_t::replace),
      {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

Json ToJson(const AttentionMap& map) {
  Json values = Json::array();
  for (const float weight : map.weights) {
    values.push_back(static_cast<int32_t>(std::lrint(weight * kUnit)));
  }
  return {{"layer", map.layer},
          {"heads", map.heads},
          {"rows", map.rows},
          {"keys", map.keys},
          {"values", values}};
}

constexpr char kHead[] = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Attention</title>
<style>
:root { --back: #ffffff; --text: #1a1c20; --faint: #5b6472; --line: #d5d9e0;
  --low: 255 255 255; --high: 8 48 107; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14161a; --text: #e6e8ec; --faint: #9aa3b2; --line: #343a44;
    --low: 20 22 26; --high: 253 216 120; } }
body { margin: 1.5rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.15rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
p { margin: .25rem 0 1rem; color: var(--faint); max-width: 46rem; }
label { margin-right: 1rem; }
select { font: inherit; color: inherit; background: var(--back);
  border: 1px solid var(--line); border-radius: 4px; padding: .1rem .3rem; }
#scroll { overflow: auto; border: 1px solid var(--line); margin-top: 1rem;
  max-height: 80vh; }
canvas { display: block; }
#value { min-height: 1.5em; margin-top: .5rem;
  font-variant-numeric: tabular-nums; }
</style></head><body>
)html";

constexpr char kBody[] = R"html(
<p>Each row is a token, each column a token that it attends to. Hover or touch a
cell for its weight. Colour runs from 0 to the largest weight of the head.</p>
<div><label>Layer <select id="layer"></select></label>
<label>Head <select id="head"></select></label></div>
<div id="scroll"><canvas id="map"></canvas></div>
<div id="value" aria-live="polite"></div>
<script>
"use strict";
const unit = 10000, cell = 22, font = "13px system-ui, sans-serif";
const byId = (id) => document.getElementById(id);
const layerBox = byId("layer"), headBox = byId("head"), canvas = byId("map");
data.maps.forEach((map, i) => layerBox.add(new Option(map.layer, i)));
function fillHeads() {
  const before = headBox.value;
  headBox.length = 0;
  data.maps[layerBox.value].heads.forEach((h, i) =>
      headBox.add(new Option(h, i)));
  if (before !== "" && before < headBox.length) headBox.value = before;
}
function current() {
  const map = data.maps[layerBox.value], size = map.rows * map.keys;
  const begin = headBox.value * size;
  return { map, values: map.values.slice(begin, begin + size) };
}
let margin = 0;
function draw() {
  const { map, values } = current(), g = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const rgb = (name) =>
      style.getPropertyValue(name).trim().split(" ").map(Number);
  const low = rgb("--low"), high = rgb("--high");
  g.font = font;
  margin = 12 + Math.min(220, Math.max(...data.tokens.map((t) =>
      g.measureText(t).width)));
  const scale = window.devicePixelRatio || 1;
  const width = margin + map.keys * cell, height = margin + map.rows * cell;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  g.scale(scale, scale);
  g.font = font;
  g.textBaseline = "middle";
  g.fillStyle = style.getPropertyValue("--text");
  const first = map.keys - map.rows;
  for (let r = 0; r < map.rows; ++r) {
    g.textAlign = "right";
    g.fillText(data.tokens[first + r], margin - 6, margin + (r + .5) * cell,
               margin - 10);
  }
  for (let k = 0; k < map.keys; ++k) {
    g.save();
    g.translate(margin + (k + .5) * cell, margin - 6);
    g.rotate(-Math.PI / 2);
    g.textAlign = "left";
    g.fillText(data.tokens[k], 0, 0, margin - 10);
    g.restore();
  }
  const top = Math.max(1, values.reduce((a, b) => Math.max(a, b), 0));
  for (let r = 0; r < map.rows; ++r) {
    for (let k = 0; k < map.keys; ++k) {
      const t = Math.sqrt(values[r * map.keys + k] / top);
      const mix = low.map((c, i) => Math.round(c + (high[i] - c) * t));
      g.fillStyle = "rgb(" + mix.join(",") + ")";
      g.fillRect(margin + k * cell, margin + r * cell, cell - 1, cell - 1);
    }
  }
}
canvas.addEventListener("pointermove", (event) => {
  const { map, values } = current();
  const k = Math.floor((event.offsetX - margin) / cell);
  const r = Math.floor((event.offsetY - margin) / cell);
  const inside = k >= 0 && r >= 0 && k < map.keys && r < map.rows;
  byId("value").textContent = !inside ? "" :
      data.tokens[map.keys - map.rows + r] + " \u2192 " + data.tokens[k] +
      ": " + (values[r * map.keys + k] / unit).toFixed(4);
});
layerBox.addEventListener("change", () => { fillHeads(); draw(); });
headBox.addEventListener("change", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
fillHeads();
draw();
</script></body></html>
)html";

}  // namespace

std::string AttentionHtml(const AttentionPage& page) {
  Json data;
  data["title"] = page.title;
  data["tokens"] = page.tokens;
  Json& maps = data["maps"] = Json::array();
  for (const AttentionMap& map : page.maps) maps.push_back(ToJson(map));
  return absl::StrCat(
      kHead, "<h1 id=\"title\"></h1>\n<script>\nconst data = ", ForScript(data),
      ";\ndocument.getElementById(\"title\").textContent = "
      "data.title;\n</script>\n",
      kBody);
}

}  // namespace lanewise
