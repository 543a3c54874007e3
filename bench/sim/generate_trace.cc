#include <algorithm>
#include <cmath>
#include <random>

#include "trace.h"

namespace triptych {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double exponential(double mean) {
    return std::exponential_distribution<double>(1 / mean)(random_);
  }
  int64_t lognormal(double median, double sigma, int64_t least, int64_t most) {
    const double x = median * std::exp(std::normal_distribution<double>(0, sigma)(random_));
    return std::clamp(static_cast<int64_t>(x), least, most);
  }
  int64_t pick(std::initializer_list<int64_t> values) {
    const auto at = static_cast<size_t>(uniform() * static_cast<double>(values.size()));
    return *(values.begin() + static_cast<std::ptrdiff_t>(at));
  }

 private:
  std::mt19937_64 random_;
};

// `n` items of `length` rows each, one behind the other with a row of text between, in front of the
// question. A tower of 24 blocks; its work and memory grow with the rows.
void add_media(TraceRequest& request, int64_t n, int64_t length, uint64_t& next_item) {
  constexpr double kGflopPerRow = 0.025;  // of one block: four patches a row, 1024 wide
  constexpr uint64_t kBytesPerRow = 32768;
  int64_t at = 8;
  for (int64_t i = 0; i < n; ++i) {
    request.media.push_back({.position = at,
                             .length = length,
                             .item = next_item++,
                             .blocks_left = 24,
                             .blocks_total = 24,
                             .block_gflop = kGflopPerRow * static_cast<double>(length),
                             .bytes = kBytesPerRow * static_cast<uint64_t>(length)});
    at += length + 1;
  }
  request.n_prompt += at;
}

TraceRequest draw_request(Generator& g, uint64_t& next_item) {
  TraceRequest r;
  const double urgency = g.uniform();
  r.service_class = urgency < 0.4   ? ServiceClass::kInteractive
                    : urgency < 0.8 ? ServiceClass::kStandard
                                    : ServiceClass::kBatch;
  r.tenant = static_cast<uint32_t>(g.uniform() * g.uniform() * 8);  // the first ask most
  r.max_new = g.pick({512, 1024});
  r.n_answer = g.lognormal(220, 0.8, 1, r.max_new);
  r.n_prompt = g.lognormal(250, 0.9, 8, 4000);
  const double kind = g.uniform();
  if (kind < 0.5) return r;
  if (kind < 0.8) {
    add_media(r, g.pick({1, 1, 1, 2, 4}), g.pick({256, 256, 576}), next_item);  // pictures
  } else if (kind < 0.9) {
    add_media(r, 1, g.lognormal(250, 0.5, 25, 750), next_item);  // sound, 25 rows a second
  } else {
    add_media(r, g.pick({8, 16, 24}), 128, next_item);  // frames of a video
  }
  return r;
}

}  // namespace

std::vector<TraceRequest> generate_trace(const TraceRecipe& recipe) {
  Generator g(recipe.seed);
  std::vector<TraceRequest> trace;
  const double burst_share = recipe.burst_s / (recipe.burst_s + recipe.calm_s);
  const double calm_rate =
      recipe.requests_per_s / (1 + burst_share * (recipe.burst_factor - 1)) / 1000;
  uint64_t next_item = 1;
  bool burst = false;
  double phase_ends = g.exponential(recipe.calm_s * 1000);
  double now = 0;
  while (true) {
    const double rate = burst ? calm_rate * recipe.burst_factor : calm_rate;
    const double next = now + g.exponential(1 / rate);
    if (next > phase_ends) {  // without memory, so the draw may start again at the change
      now = phase_ends;
      burst = !burst;
      phase_ends += g.exponential((burst ? recipe.burst_s : recipe.calm_s) * 1000);
      continue;
    }
    now = next;
    if (now > recipe.seconds * 1000) return trace;
    TraceRequest request = draw_request(g, next_item);
    request.arrival_ms = now;
    trace.push_back(std::move(request));
  }
}

}  // namespace triptych
