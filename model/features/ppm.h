// Images out of PPM files, the plainest format there is: other programs convert
// to it ("convert cat.jpg cat.ppm").
//
//   LANEWISE_ASSIGN_OR_RETURN(Image image, ReadPpm("cat.ppm"));
#ifndef LANEWISE_MODEL_FEATURES_PPM_H_
#define LANEWISE_MODEL_FEATURES_PPM_H_

#include <string>

#include "absl/status/statusor.h"
#include "model/features/image.h"
#include "model/format/mapped_file.h"

namespace lanewise {

// The first image of a binary PPM ("P6", Netpbm) with a maximum of 255; its
// header, comments included, may have 64 KiB. Errors name the file:
// INVALID_ARGUMENT for what is not such a file, UNIMPLEMENTED for another
// maximum, DATA_LOSS where it is cut short, RESOURCE_EXHAUSTED beyond the
// limits of image.h.
absl::StatusOr<Image> ReadPpm(const std::string& path);
absl::StatusOr<Image> ReadPpm(const MappedFile& file);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FEATURES_PPM_H_
