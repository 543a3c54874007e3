#include <utility>

#include "media/image/decoders.h"
#include "media/image/jpeg_source.h"

namespace triptych {

Result<Image> decode_jpeg(std::span<const std::byte> bytes, const ImageHeader& header) {
  TRIPTYCH_ASSIGN_OR_RETURN(const auto source, JpegSource::open(bytes, header));
  TRIPTYCH_RETURN_IF_ERROR(source->start_rows());
  Image image(source->width(), source->height());
  TRIPTYCH_RETURN_IF_ERROR(source->read_rows(image.height(), image.data(), image.stride()));
  return image;
}

}  // namespace triptych
