// Whisper: BART with its norms before the sublayers, whose encoder reads a
// spectrogram through two convolutions; keys have no bias (Radford et al.,
// arXiv:2212.04356).
#include "model/families/bart_like.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BartLike keys{"whisper"};
  keys.norm_first = true;
  keys.embedding_norm = false;
  keys.positions = {PositionSpec::Kind::kLearned, 0};
  keys.head_bias = false;
  keys.encoder_positions = "max_source_positions";
  keys.decoder_positions = "max_target_positions";
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadBartLike(config, file, keys));
  ModelSpec& encoder = spec.encoder.front();
  encoder.input = InputKind::kVectors;
  AudioStemSpec stem;
  LANEWISE_ASSIGN_OR_RETURN(stem.bands,
                            GetUint(config, file, "num_mel_bins", kMaxWidth));
  encoder.audio_stem = stem;
  return spec;
}

}  // namespace

const Family& WhisperFamily() {
  static const Family* const family = [] {
    BartTables tables;
    tables.key_bias = false;
    Family* whisper = NewBartFamily("whisper", tables, FromConfig);
    whisper->tensors.push_back(
        {"proj_out.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kWidth});
    const TensorRule stem[] = {
        // clang-format off
        {"encoder.conv1.weight", "", Slot::kAudioConv1, false, Dim::kWidth, Dim::kConv1, Presence::kRequired, TensorLayout::kConv1d},
        {"encoder.conv1.bias", "", Slot::kAudioConv1, true, Dim::kWidth, Dim::kOne},
        {"encoder.conv2.weight", "", Slot::kAudioConv2, false, Dim::kWidth, Dim::kConv2, Presence::kRequired, TensorLayout::kConv1d},
        {"encoder.conv2.bias", "", Slot::kAudioConv2, true, Dim::kWidth, Dim::kOne},
        // clang-format on
    };
    for (const TensorRule& rule : stem) {
      whisper->encoder_tensors.push_back(rule);
    }
    return whisper;
  }();
  return *family;
}

}  // namespace lanewise
