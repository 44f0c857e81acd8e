#include "model/requantize.h"

#include "absl/strings/str_cat.h"
#include "simd/matmul.h"

namespace lanewise {
namespace {

bool IsFloat(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

// Whether a packed matrix of this source would hold floats: types without
// kernels of their own are packed so.
bool IsPackedAsFloat(const Context& context, const TensorSource& source) {
  const auto empty = Pack(context, source.type(), source.cols(), {});
  return empty.ok() && IsFloat(empty->type());
}

// The type that is meant, whatever the rows' length.
DType WantedType(DType asked, Slot slot, size_t cols) {
  if (slot == Slot::kRouter || slot == Slot::kSharedWeight) return DType::kF32;
  const bool small = !IsFloat(asked) && asked != DType::kQ8_0;
  if (small && (slot == Slot::kTokenEmbedding || slot == Slot::kHead)) {
    return cols % kSuperblockSize == 0 ? DType::kQ6_K : DType::kQ8_0;
  }
  return asked;
}

std::string Line(const std::string& why, size_t count,
                 const std::string& first) {
  return absl::StrCat("weights: ", count, " matrices ", why, ": ", first,
                      count > 1 ? ", …" : "");
}

}  // namespace

void Requantizer::Note(const TensorSource& source, Exceptions* exceptions) {
  if (exceptions->count++ == 0) exceptions->first = source.tensor().name;
}

DType Requantizer::TypeFor(Slot slot, const Context& context,
                           const TensorSource& source) {
  if (!IsPackedAsFloat(context, source)) {
    Note(source, &quantized_);
    return source.type();
  }
  const DType wanted = WantedType(*type_, slot, source.cols());
  if (source.cols() % Traits(wanted).block_size == 0) return wanted;
  if (source.cols() % kBlockSize != 0) {
    Note(source, &odd_);
    return source.type();
  }
  Note(source, &smaller_);
  return DType::kQ8_0;
}

absl::Status Requantizer::Apply(Slot slot, const Checkpoint& checkpoint,
                                const Context& context, TensorSource* source) {
  if (!type_.has_value()) return absl::OkStatus();
  return source->Convert(TypeFor(slot, context, *source), checkpoint, context);
}

std::vector<std::string> Requantizer::Notices() const {
  std::vector<std::string> lines;
  if (quantized_.count > 0) {
    lines.push_back(Line("are quantized in the file and stay as they are",
                         quantized_.count, quantized_.first));
  }
  if (odd_.count > 0) {
    lines.push_back(
        Line(absl::StrCat("have rows that are no multiple of ", kBlockSize,
                          " elements and stay as they are"),
             odd_.count, odd_.first));
  }
  if (smaller_.count > 0) {
    lines.push_back(
        Line(absl::StrCat("have rows that are no multiple of ", kSuperblockSize,
                          " elements and become Q8_0 instead of ",
                          Traits(*type_).name),
             smaller_.count, smaller_.first));
  }
  return lines;
}

}  // namespace lanewise
