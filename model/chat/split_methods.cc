// Methods of str that take it apart or put it together.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/chat/builtins.h"
#include "model/chat/text_ops.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

using Result = absl::StatusOr<Value>;
using Piece = std::pair<size_t, size_t>;  // bytes [first, second)

// Ends of the pieces; the steps bound their number.
absl::StatusOr<std::vector<Piece>> SplitSpace(Machine& machine,
                                              absl::string_view s,
                                              int64_t limit) {
  std::vector<Piece> pieces;
  size_t pos = SkipSpace(s, 0);
  while (pos < s.size()) {
    LANEWISE_RETURN_IF_ERROR(machine.Step());
    if (limit-- == 0) {
      pieces.push_back({pos, s.size()});
      break;
    }
    size_t end = pos;
    while (end < s.size()) {
      size_t next = end;
      if (IsSpace(DecodeUtf8(s, &next))) break;
      end = next;
    }
    pieces.push_back({pos, end});
    pos = SkipSpace(s, end);
  }
  return pieces;
}

absl::StatusOr<std::vector<Piece>> SplitSpaceRight(Machine& machine,
                                                   absl::string_view s,
                                                   int64_t limit) {
  LANEWISE_ASSIGN_OR_RETURN(std::vector<Piece> pieces,
                            SplitSpace(machine, s, -1));
  if (limit < 0 || pieces.size() <= static_cast<size_t>(limit)) return pieces;
  // The first pieces stay together, with the white space at their front.
  const size_t joined = pieces.size() - static_cast<size_t>(limit);
  std::vector<Piece> out = {{0, pieces[joined - 1].second}};
  out.insert(out.end(), pieces.begin() + static_cast<std::ptrdiff_t>(joined),
             pieces.end());
  return out;
}

absl::StatusOr<std::vector<Piece>> SplitAll(Machine& machine,
                                            absl::string_view s,
                                            absl::string_view separator,
                                            int64_t limit) {
  std::vector<Piece> pieces;
  size_t begin = 0;
  while (limit-- != 0) {
    const size_t hit = FindLinear(s, separator, begin);
    if (hit == s.npos) break;
    LANEWISE_RETURN_IF_ERROR(machine.Step(1 + separator.size() / 128));
    pieces.push_back({begin, hit});
    begin = hit + separator.size();
  }
  pieces.push_back({begin, s.size()});
  return pieces;
}

// From the right: on the reversed bytes, which keeps it linear.
absl::StatusOr<std::vector<Piece>> SplitAllRight(Machine& machine,
                                                 absl::string_view s,
                                                 absl::string_view separator,
                                                 int64_t limit) {
  const std::string backward(s.rbegin(), s.rend());
  const std::string reversed(separator.rbegin(), separator.rend());
  LANEWISE_ASSIGN_OR_RETURN(std::vector<Piece> pieces,
                            SplitAll(machine, backward, reversed, limit));
  std::reverse(pieces.begin(), pieces.end());
  for (Piece& p : pieces) p = {s.size() - p.second, s.size() - p.first};
  return pieces;
}

Result MakeList(Machine& machine, const Value& self,
                const std::vector<Piece>& pieces, Kind kind) {
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const Piece& p : pieces) {
    LANEWISE_ASSIGN_OR_RETURN(
        Value item,
        machine.String(self.text().Substr(p.first, p.second - p.first),
                       self.string().markup));
    items.push_back(std::move(item));
  }
  return machine.List(std::move(items), kind);
}

template <bool from_right>
Result Split(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("split", args, {"sep", "maxsplit"}, 0));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t limit, IntArg(bound[1], -1));
  const absl::string_view s = self.bytes();
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(2 * s.size()));
  absl::StatusOr<std::vector<Piece>> pieces;
  if (bound[0] == nullptr || bound[0]->is_none()) {
    pieces = from_right ? SplitSpaceRight(machine, s, limit)
                        : SplitSpace(machine, s, limit);
  } else {
    LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "split"));
    const std::string& separator = bound[0]->bytes();
    if (separator.empty()) return Fail("empty separator");
    pieces = from_right ? SplitAllRight(machine, s, separator, limit)
                        : SplitAll(machine, s, separator, limit);
  }
  LANEWISE_RETURN_IF_ERROR(pieces.status());
  return MakeList(machine, self, *pieces, Kind::kList);
}

template <bool from_right>
Result Partition(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("partition", args, {"sep"}, 1));
  LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "partition"));
  const std::string& separator = bound[0]->bytes();
  if (separator.empty()) return Fail("empty separator");
  const size_t n = self.text().size();
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(2 * self.text().footprint()));
  LANEWISE_ASSIGN_OR_RETURN(
      const std::vector<Piece> sides,
      from_right ? SplitAllRight(machine, self.bytes(), separator, 1)
                 : SplitAll(machine, self.bytes(), separator, 1));
  std::vector<Piece> pieces;
  if (sides.size() == 2) {
    pieces = {sides[0], {sides[0].second, sides[1].first}, sides[1]};
  } else if (from_right) {
    pieces = {{0, 0}, {0, 0}, {0, n}};
  } else {
    pieces = {{0, n}, {n, n}, {n, n}};
  }
  return MakeList(machine, self, pieces, Kind::kTuple);
}

Result SplitLinesMethod(Machine& machine, const Value& self,
                        const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("splitlines", args, {"keepends"}, 0));
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(2 * self.text().footprint()));
  std::vector<Value> items;
  for (Text& line : SplitLines(self.text(), BoolArg(bound[0], false))) {
    LANEWISE_ASSIGN_OR_RETURN(Value item, machine.String(std::move(line)));
    items.push_back(std::move(item));
  }
  return machine.List(std::move(items));
}

Result JoinMethod(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("join", args, {"iterable"}, 1));
  if (!IsIterable(*bound[0])) return Fail("can only join an iterable");
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            Iterate(machine, *bound[0]));
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_string()) continue;
    return Fail("sequence item ", i, ": expected str instance, ",
                TypeName(items[i]), " found");
  }
  LANEWISE_ASSIGN_OR_RETURN(Text text, Join(machine, self.text(), items));
  return machine.String(std::move(text), self.string().markup);
}

constexpr NamedMethod kMethods[] = {
    {"join", JoinMethod},
    {"partition", Partition<false>},
    {"rpartition", Partition<true>},
    {"rsplit", Split<true>},
    {"split", Split<false>},
    {"splitlines", SplitLinesMethod},
};

}  // namespace

MethodFunction FindSplitMethod(absl::string_view name) {
  for (const NamedMethod& method : kMethods) {
    if (method.name == name) return method.function;
  }
  return nullptr;
}

}  // namespace lanewise::chat
