// Audio out of WAV files, which may be anything.
//
//   LANEWISE_ASSIGN_OR_RETURN(std::vector<float> samples,
//                             ReadWav("speech.wav", 16000));
//
// Read: RIFF files (IBM & Microsoft, Multimedia Programming Interface 1.0, with
// WAVEFORMATEXTENSIBLE) of uncompressed 16-, 24- and 32-bit integers and 32-bit
// floats with one channel or two.
#ifndef LANEWISE_MODEL_FEATURES_WAV_H_
#define LANEWISE_MODEL_FEATURES_WAV_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/format/mapped_file.h"

namespace lanewise {

// Four hours at 16 kHz.
inline constexpr uint64_t kMaxAudioSamples = uint64_t{1} << 28;

// Samples, integers divided so that they lie in [−1, 1); of two channels the
// mean. Nothing is resampled: another sampling rate is an error that says how
// to convert the file. Errors name the file and the field: INVALID_ARGUMENT for
// what is not such a file or holds a float that is not finite, DATA_LOSS where
// it is cut short, UNIMPLEMENTED for a format not listed above,
// RESOURCE_EXHAUSTED beyond kMaxAudioSamples.
absl::StatusOr<std::vector<float>> ReadWav(const std::string& path,
                                           size_t sampling_rate);
absl::StatusOr<std::vector<float>> ReadWav(const MappedFile& file,
                                           size_t sampling_rate);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FEATURES_WAV_H_
