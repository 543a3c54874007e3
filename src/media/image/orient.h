#pragma once

#include "media/image/image.h"

namespace triptych {

/// Turns stored pixels upright by an EXIF orientation 2..8; 1 hands the picture back as it is.
Image apply_orientation(Image image, int orientation);

}  // namespace triptych
