// What the first layer reads: embeddings, positions, rotations.
#include <algorithm>
#include <cstring>

#include "model/executor.h"
#include "simd/vector_ops.h"

namespace lanewise {

void Executor::Embed(absl::Span<const Entry> batch) {
  const ModelSpec& spec = model_.spec();
  const Weights& weights = model_.weights();
  const size_t token_width = spec.token_width();
  const size_t width = spec.input_width();
  const bool project = spec.embedding_width.has_value();
  const bool project_last = project && spec.embedding_projected_last;
  float* const embedded = project ? normed_.get() : residual_.get();
  EmbedTokens(batch, embedded);
  if (spec.embedding_scale != 1.0f) {
    Scale(context_.target(), spec.embedding_scale, rows_ * token_width,
          embedded);
  }
  if (project && !project_last) {
    Project(weights.embedding_in, {embedded, token_width, rows_, token_width},
            residual_.get(), spec.width, false);
  }
  float* const rows = project_last ? normed_.get() : residual_.get();
  AddTokenTypes(batch, rows);
  AddPositions(batch, rows);
  if (spec.embedding_norm.has_value()) {
    Norm(*spec.embedding_norm, weights.embedding_norm, rows, {rows_, width},
         rows);
  }
  if (project_last) {
    Project(weights.embedding_in, {rows, width, rows_, width}, residual_.get(),
            spec.width, false);
  }
}

void Executor::EmbedTokens(absl::Span<const Entry> batch, float* out) {
  const size_t width = model_.spec().token_width();
  for (const Entry& entry : batch) {
    std::copy(entry.vectors.begin(), entry.vectors.end(), out);
    out += entry.vectors.size();
    for (const int32_t id : entry.ids) {
      DecodeRow(*model_.weights().token_embedding, static_cast<size_t>(id),
                out);
      out += width;
    }
  }
}

void Executor::AddTokenTypes(absl::Span<const Entry> batch, float* rows) {
  if (model_.spec().token_types == 0) return;
  const size_t width = model_.spec().input_width();
  const float* table = model_.weights().token_type_embedding.data();
  for (const Entry& entry : batch) {
    for (size_t i = 0; i < RowsOf(entry); ++i) {
      const size_t type =
          entry.type_ids.empty() ? 0 : static_cast<size_t>(entry.type_ids[i]);
      AddTo(context_.target(), table + type * width, width, rows);
      rows += width;
    }
  }
}

void Executor::AddPositions(absl::Span<const Entry> batch, float* rows) {
  const PositionSpec& positions = model_.spec().positions;
  if (positions.kind == PositionSpec::Kind::kNone) return;
  const size_t width = model_.spec().input_width();
  for (const Entry& entry : batch) {
    const size_t count = RowsOf(entry);
    const size_t first =
        positions.offset + (entry.cache == nullptr ? 0 : entry.cache->length());
    if (positions.kind == PositionSpec::Kind::kLearned) {
      AddTo(context_.target(),
            model_.weights().position_embedding.data() + first * width,
            count * width, rows);
    } else {
      for (size_t i = 0; i < count; ++i) {
        if (!entry.ids.empty() && positions.bare_id == entry.ids[i]) continue;
        sinusoids_->Fill(first + i, sinusoid_row_.data());
        AddTo(context_.target(), sinusoid_row_.data(), width, rows + i * width);
      }
    }
    rows += count * width;
  }
}

void Executor::FillRope(absl::Span<const Entry> batch) {
  for (size_t i = 0; i < model_.spec().ropes.size(); ++i) {
    const RopeTable& table = model_.rope(i);
    size_t offset = rope_offsets_[i];
    for (const Entry& entry : batch) {
      const size_t first = entry.cache == nullptr ? 0 : entry.cache->length();
      const size_t rows = RowsOf(entry);
      const size_t prompt =
          entry.prompt_length > 0 ? entry.prompt_length : first + rows;
      size_t length = 0;
      absl::Span<const float> frequencies;
      for (size_t j = first; j < first + rows; ++j) {
        if (length != std::max(prompt, j + 1)) {
          length = std::max(prompt, j + 1);
          frequencies = table.Frequencies(length, rope_scratch_.data());
        }
        table.Fill(frequencies, j, cos_.get() + offset, sin_.get() + offset);
        offset += table.half();
      }
    }
  }
}

}  // namespace lanewise
