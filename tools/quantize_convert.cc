#include "tools/quantize_convert.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "simd/status_macros.h"
#include "tools/escaped.h"

namespace lanewise {
namespace {

// Elements of one task: whole blocks of every type.
constexpr uint64_t kPiece = 64 * 1024;
constexpr float kMaxHalf = 65504.0f;

// One task's part of the tensor. The buffers stay from piece to piece.
struct Piece {
  uint64_t begin = 0, count = 0;  // elements
  std::vector<uint8_t> in, out;
  std::vector<float> values, stored;
  RoundTripError error;
  uint64_t cut = 0;
  absl::Status status;
};

class Converter {
 public:
  Converter(const SourceTensor& tensor, const TensorReader& reader, DType type)
      : tensor_(tensor),
        reader_(reader),
        from_(Traits(tensor.type)),
        to_(Traits(type)),
        type_(type) {}

  void Run(Piece* piece) const {
    piece->in.resize(BytesOf(tensor_.type, piece->count));
    piece->status = reader_.Read(piece->begin, piece->count, piece->in.data());
    if (!piece->status.ok()) return;
    if (from_.decode == nullptr) {  // no weights: copied
      piece->out.swap(piece->in);
      return;
    }
    piece->values.resize(piece->count);
    from_.decode(piece->in.data(), piece->count, piece->values.data());
    piece->status = CheckFinite(*piece);
    if (!piece->status.ok()) return;
    if (type_ == tensor_.type) {
      piece->error =
          Compare(piece->values.data(), piece->values.data(), piece->count);
      piece->out.swap(piece->in);
      return;
    }
    piece->out.resize(BytesOf(type_, piece->count));
    Encode(type_, piece->values.data(), piece->count, piece->out.data());
    piece->stored.resize(piece->count);
    to_.decode(piece->out.data(), piece->count, piece->stored.data());
    piece->error =
        Compare(piece->values.data(), piece->stored.data(), piece->count);
    if (type_ != DType::kF16) return;
    piece->cut = static_cast<uint64_t>(
        std::count_if(piece->values.begin(), piece->values.end(),
                      [](float x) { return std::abs(x) > kMaxHalf; }));
  }

 private:
  absl::Status CheckFinite(const Piece& piece) const {
    const size_t at = FirstNonFinite(piece.values.data(), piece.count);
    if (at == piece.count) return absl::OkStatus();
    const uint64_t row = (piece.begin + at) / tensor_.row();
    const uint64_t col = (piece.begin + at) % tensor_.row();
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", Escaped(tensor_.original, 200), ": row ", row,
                     ", column ", col, ": expected finite values, found ",
                     std::isnan(piece.values[at]) ? "NaN" : "an infinity",
                     ": the model is damaged, get its files again"));
  }

  const SourceTensor& tensor_;
  const TensorReader& reader_;
  const DTypeTraits& from_;
  const DTypeTraits& to_;
  const DType type_;
};

}  // namespace

absl::StatusOr<ConvertedTensor> ConvertTensor(const QuantizeSource& source,
                                              size_t index, DType type,
                                              const Context& context,
                                              const ConvertOptions& options,
                                              GgufWriter* writer) {
  const SourceTensor& tensor = source.tensors()[index];
  LANEWISE_ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> reader,
                            source.Open(index));
  const Converter converter(tensor, *reader, type);
  const uint64_t elements = tensor.elements();
  std::vector<Piece> pieces(context.threads() * 2);
  ConvertedTensor result = {};
  for (uint64_t begin = 0; begin < elements;) {
    size_t used = 0;
    for (; used < pieces.size() && begin < elements; ++used) {
      pieces[used].begin = begin;
      pieces[used].count = std::min(kPiece, elements - begin);
      begin += pieces[used].count;
    }
    context.ParallelFor(used, [&](size_t task, size_t) {
      const ScopedFloatEnvironment environment;
      converter.Run(&pieces[task]);
    });
    for (size_t i = 0; i < used; ++i) {
      LANEWISE_RETURN_IF_ERROR(pieces[i].status);
      LANEWISE_RETURN_IF_ERROR(writer->Append(pieces[i].out));
      result.bytes += pieces[i].out.size();
      result.error.Add(pieces[i].error);
      result.cut += pieces[i].cut;
    }
    if (options.progress) LANEWISE_RETURN_IF_ERROR(options.progress(begin));
  }
  source.Release(index);
  return result;
}

}  // namespace lanewise
