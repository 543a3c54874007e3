#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace triptych::bench {

/// A file and the family of near-collisions that it belongs to.
struct NearFile {
  const char* family;
  std::string bytes;
};

/// Files that differ in one thing from each other: sides swapped, tRNS, palette, one sample, what
/// follows the file, the format around equal pixels, the order of frames. Another set a seed.
std::vector<NearFile> near_files(uint32_t seed);
/// The eight EXIF orientations of one JPEG, and the JPEG itself.
std::vector<NearFile> near_orientations(const std::string& jpeg);

}  // namespace triptych::bench
