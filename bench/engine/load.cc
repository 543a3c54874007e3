#include "load.h"

#include "pictures.h"

namespace triptych::bench {
namespace {

constexpr double kPictureShare = 0.3;
constexpr int kCapacityRequests = 400;

}  // namespace

Arrival MixedLoad::next(double at_ms) {
  const auto answer = static_cast<int64_t>(16 + random_() % 32);
  const bool picture = std::uniform_real_distribution<double>()(random_) < kPictureShare;
  return {.at_ms = at_ms,
          .has_picture = picture,
          .request = picture ? picture_request(synthetic_picture(n_pictures_++, 320, 240), answer)
                             : text_request(static_cast<uint32_t>(random_()), answer)};
}

std::vector<Arrival> MixedLoad::arrivals(double per_s, double seconds) {
  std::exponential_distribution<double> gap(per_s);
  std::vector<Arrival> out;
  for (double at = gap(random_); at < seconds; at += gap(random_)) out.push_back(next(at * 1e3));
  return out;
}

double MixedLoad::capacity(MultiModalEngine& engine, size_t most_open) {
  std::vector<Arrival> all;
  for (int i = 0; i < kCapacityRequests; ++i) all.push_back(next(0));
  return kCapacityRequests / end_ms(play(engine, all, most_open)) * 1e3;
}

}  // namespace triptych::bench
