#include "model/chat/text.h"

#include <algorithm>

namespace lanewise::chat {

Text Text::Template(std::string bytes) {
  Text t;
  t.bytes_ = std::move(bytes);
  return t;
}

Text Text::Input(std::string bytes) {
  Text t;
  t.bytes_ = std::move(bytes);
  if (!t.bytes_.empty()) t.input_.push_back({0, t.bytes_.size()});
  return t;
}

void Text::AddRange(size_t begin, size_t end) {
  if (begin >= end) return;
  if (!input_.empty() && input_.back().second == begin) {
    input_.back().second = end;
  } else {
    input_.push_back({begin, end});
  }
}

void Text::Append(const Text& other) { AppendSlice(other, 0, other.size()); }

void Text::AppendSlice(const Text& other, size_t pos, size_t n) {
  pos = std::min(pos, other.size());
  const size_t end = pos + std::min(n, other.size() - pos);
  const size_t base = bytes_.size();
  bytes_.append(other.bytes_, pos, end - pos);
  auto it =
      std::upper_bound(other.input_.begin(), other.input_.end(), pos,
                       [](size_t p, const Range& r) { return p < r.second; });
  for (; it != other.input_.end() && it->first < end; ++it) {
    AddRange(base + std::max(it->first, pos) - pos,
             base + std::min(it->second, end) - pos);
  }
}

Text Text::Substr(size_t pos, size_t n) const {
  Text t;
  t.AppendSlice(*this, pos, n);
  return t;
}

}  // namespace lanewise::chat
