#include "runtime/stop_strings.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/utf8.h"

namespace lanewise {

absl::StatusOr<StopStrings> StopStrings::Create(
    std::vector<std::string> strings) {
  size_t total = 0;
  for (size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("stop_strings[", i,
                       "]: expected at least one character, found \"\""));
    }
    if (!IsValidUtf8(strings[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("stop_strings[", i, "]: expected UTF-8, found \"",
                       absl::CHexEscape(strings[i].substr(0, 80)), "\""));
    }
    if (strings[i].size() > kMaxTotalBytes - total) {
      return absl::InvalidArgumentError(
          absl::StrCat("stop_strings: expected at most ", kMaxTotalBytes,
                       " bytes in all, found more by stop_strings[", i, "]"));
    }
    total += strings[i].size();
  }
  StopStrings stops;
  stops.strings_ = std::move(strings);
  stops.nodes_.emplace_back();
  for (size_t i = 0; i < stops.strings_.size(); ++i) {
    stops.Insert(static_cast<int32_t>(i));
  }
  stops.LinkFailures();
  return stops;
}

void StopStrings::Insert(int32_t index) {
  int32_t node = 0;
  for (const char c : strings_[index]) {
    const uint8_t byte = static_cast<uint8_t>(c);
    auto& edges = nodes_[node].next;
    const auto edge = std::lower_bound(edges.begin(), edges.end(), byte,
                                       [](const std::pair<uint8_t, int32_t>& e,
                                          uint8_t b) { return e.first < b; });
    if (edge != edges.end() && edge->first == byte) {
      node = edge->second;
      continue;
    }
    const int32_t child = static_cast<int32_t>(nodes_.size());
    edges.insert(edge, {byte, child});
    const int32_t depth = nodes_[node].depth + 1;
    nodes_.emplace_back();  // edges is dangling from here on
    nodes_.back().depth = depth;
    nodes_.back().word = index;
    node = child;
  }
  if (nodes_[node].match < 0) nodes_[node].match = index;
}

void StopStrings::LinkFailures() {
  std::vector<int32_t> queue = {0};  // breadth first: suffixes are shorter
  queue.reserve(nodes_.size());
  for (size_t i = 0; i < queue.size(); ++i) {
    const int32_t parent = queue[i];
    for (const auto& [byte, child] : nodes_[parent].next) {
      Node& node = nodes_[child];
      if (parent != 0) node.fail = Advance(nodes_[parent].fail, byte);
      if (node.match < 0) node.match = nodes_[node.fail].match;
      queue.push_back(child);
    }
  }
}

int32_t StopStrings::Child(int32_t node, uint8_t byte) const {
  const auto& edges = nodes_[node].next;
  const auto edge = std::lower_bound(edges.begin(), edges.end(), byte,
                                     [](const std::pair<uint8_t, int32_t>& e,
                                        uint8_t b) { return e.first < b; });
  return edge != edges.end() && edge->first == byte ? edge->second : -1;
}

int32_t StopStrings::Advance(int32_t node, uint8_t byte) const {
  while (true) {
    const int32_t child = Child(node, byte);
    if (child >= 0) return child;
    if (node == 0) return 0;
    node = nodes_[node].fail;
  }
}

// What is held back is the path to the automaton's node: the longest suffix of
// the text that begins a stop string. So it need not be stored.
absl::string_view StopFilter::Held() const {
  if (node_ == 0) return "";
  const StopStrings::Node& node = stops_->nodes_[node_];
  return absl::string_view(stops_->strings_[node.word])
      .substr(0, static_cast<size_t>(node.depth));
}

std::string StopFilter::Append(absl::string_view piece) {
  if (stopped()) return "";
  if (stops_ == nullptr || stops_->empty()) return std::string(piece);
  const absl::string_view held = Held();
  size_t end = 0;  // in held + piece, of what is shown
  for (size_t i = 0; i < piece.size() && !stopped(); ++i) {
    node_ = stops_->Advance(node_, static_cast<uint8_t>(piece[i]));
    const StopStrings::Node& node = stops_->nodes_[node_];
    stop_index_ = node.match;
    const size_t cut = stopped() ? stops_->strings_[stop_index_].size()
                                 : static_cast<size_t>(node.depth);
    end = held.size() + i + 1 - cut;
  }
  std::string out(held.substr(0, end));
  if (end > held.size())
    absl::StrAppend(&out, piece.substr(0, end - held.size()));
  if (stopped()) node_ = 0;
  return out;
}

std::string StopFilter::Finish() {
  std::string out(Held());
  node_ = 0;
  return out;
}

}  // namespace lanewise
