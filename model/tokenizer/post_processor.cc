#include "model/tokenizer/post_processor.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lanewise {
namespace {

using Kind = TemplatePart::Kind;

void Cut(size_t length, bool left, std::vector<int32_t>* ids) {
  if (ids->size() <= length) return;
  if (left) {
    ids->erase(ids->begin(), ids->end() - static_cast<ptrdiff_t>(length));
  } else {
    ids->resize(length);
  }
}

// Lengths of both texts under a common limit: the longer one gives first.
void CutBoth(size_t limit, bool left, std::vector<int32_t>* first,
             std::vector<int32_t>* second) {
  size_t shorter = first->size();
  size_t longer = second->size();
  const bool swapped = shorter > longer;
  if (swapped) std::swap(shorter, longer);
  longer = shorter > limit ? shorter : std::max(shorter, limit - shorter);
  if (shorter + longer > limit) {
    shorter = limit / 2;
    longer = shorter + limit % 2;
  }
  if (swapped) std::swap(shorter, longer);
  Cut(shorter, left, first);
  Cut(longer, left, second);
}

}  // namespace

PostProcessor BertPostProcessor(int32_t cls, int32_t sep) {
  PostProcessor post;
  post.single = {
      {Kind::kTokens, 0, {cls}}, {Kind::kFirst, 0}, {Kind::kTokens, 0, {sep}}};
  post.pair = post.single;
  post.pair.push_back({Kind::kSecond, 1});
  post.pair.push_back({Kind::kTokens, 1, {sep}});
  return post;
}

PostProcessor RobertaPostProcessor(int32_t cls, int32_t sep) {
  PostProcessor post;
  post.single = {
      {Kind::kTokens, 0, {cls}}, {Kind::kFirst, 0}, {Kind::kTokens, 0, {sep}}};
  post.pair = post.single;
  post.pair.push_back({Kind::kTokens, 0, {sep}});
  post.pair.push_back({Kind::kSecond, 0});
  post.pair.push_back({Kind::kTokens, 0, {sep}});
  return post;
}

absl::Status Truncate(const Truncation& truncation, size_t template_tokens,
                      std::vector<int32_t>* first,
                      std::vector<int32_t>* second) {
  const size_t limit = truncation.max_length > template_tokens
                           ? truncation.max_length - template_tokens
                           : 0;
  const size_t total = first->size() + (second != nullptr ? second->size() : 0);
  if (total <= limit) return absl::OkStatus();
  const bool left = truncation.left;
  if (truncation.strategy == Truncation::Strategy::kLongestFirst ||
      limit == 0) {
    if (second == nullptr) {
      Cut(limit, left, first);
    } else {
      CutBoth(limit, left, first, second);
    }
    return absl::OkStatus();
  }
  std::vector<int32_t>* target =
      truncation.strategy == Truncation::Strategy::kOnlyFirst ? first : second;
  const size_t excess = total - limit;
  if (target == nullptr || target->size() <= excess) {
    return absl::FailedPreconditionError(
        absl::StrCat("truncation: expected more than ", excess,
                     " tokens in the text to cut, found ",
                     target == nullptr ? 0 : target->size()));
  }
  Cut(target->size() - excess, left, target);
  return absl::OkStatus();
}

size_t CountTokens(const Template& parts) {
  size_t count = 0;
  for (const TemplatePart& part : parts) count += part.ids.size();
  return count;
}

Encoded ApplyTemplate(const Template& parts, bool add_special,
                      const std::vector<int32_t>& first,
                      const std::vector<int32_t>& second) {
  Encoded encoded;
  for (const TemplatePart& part : parts) {
    if (part.kind == Kind::kTokens && !add_special) continue;
    const std::vector<int32_t>& ids = part.kind == Kind::kFirst    ? first
                                      : part.kind == Kind::kSecond ? second
                                                                   : part.ids;
    encoded.ids.insert(encoded.ids.end(), ids.begin(), ids.end());
    encoded.type_ids.resize(encoded.ids.size(), part.type_id);
    const int8_t text = part.kind == Kind::kFirst    ? 0
                        : part.kind == Kind::kSecond ? 1
                                                     : -1;
    encoded.texts.resize(encoded.ids.size(), text);
  }
  return encoded;
}

void Pad(const Padding& padding, Encoded* encoded) {
  size_t length = padding.length.value_or(encoded->ids.size());
  if (padding.multiple > 1 && length % padding.multiple != 0) {
    length += padding.multiple - length % padding.multiple;
  }
  if (length <= encoded->ids.size()) return;
  const size_t count = length - encoded->ids.size();
  const auto add = [&](auto* values, auto value) {
    values->insert(padding.left ? values->begin() : values->end(), count,
                   value);
  };
  add(&encoded->ids, padding.id);
  add(&encoded->type_ids, padding.type_id);
  add(&encoded->texts, int8_t{-1});
}

}  // namespace lanewise
