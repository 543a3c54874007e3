// Minutes of random requests (text, pictures, several answers, broken files), cancelled by other
// threads or ended by their deadlines at any point of their way. In the end every page is free or
// in the prefix cache, no feature is held, and memory is what it was when the caches were full.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <mutex>
#include <random>
#include <thread>

#include "pictures.h"
#include "rig.h"

namespace triptych::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFronts = 6;
constexpr double kWarmShare = 0.3;  // of the time, until caches and pools are full

EngineOptions options() {
  EngineOptions out;
  out.limits.max_sequences = 12;
  out.limits.kv_cap_bytes = uint64_t{96} << 20;
  out.limits.media.encoder_cache_bytes = uint64_t{24} << 20;
  return out;
}

Request random_request(std::mt19937& random) {
  const auto max_tokens = static_cast<int64_t>(1 + random() % 60);
  Request out = text_request(static_cast<uint32_t>(random() % 200), max_tokens);
  if (random() % 2 == 0) {
    MediaItem picture = synthetic_picture(static_cast<uint32_t>(random() % 400),
                                          32 + random() % 600, 32 + random() % 400);
    if (random() % 16 == 0) {
      picture.bytes = std::make_shared<const std::string>(
          picture.bytes->substr(0, random() % picture.bytes->size()));
    }
    out = picture_request(picture, max_tokens);
  }
  if (random() % 6 == 0) out.sampling.n = 2;
  return out;
}

struct Counts {
  int64_t finished = 0;
  int64_t cancelled = 0;
  int64_t expired = 0;
  int64_t refused = 0;  ///< at once or by the decoder
  int64_t failed = 0;   ///< in any other way
};

/// The streams that another thread may cancel.
class Victims {
 public:
  void add(uint64_t id) {
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
    if (ids_.size() > 32) ids_.erase(ids_.begin());
  }
  uint64_t pick(std::mt19937& random) {
    const std::lock_guard lock(mutex_);
    return ids_.empty() ? 0 : ids_[random() % ids_.size()];
  }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> ids_;
};

void count(const TokenEvent& last, Counts& counts) {
  const StatusCode code = last.error.code();
  if (last.finish == FinishReason::kCancelled) {
    ++counts.cancelled;
  } else if (last.error.is_ok()) {
    ++counts.finished;
  } else if (code == StatusCode::kDeadlineExceeded) {
    ++counts.expired;
  } else if (code == StatusCode::kDataLoss || code == StatusCode::kInvalidArgument) {
    ++counts.refused;
  } else {
    ++counts.failed;
    fmt::print("{}\n", last.error.message());
  }
}

/// One front thread: up to 4 requests at once, until `end`.
Counts front(MultiModalEngine& engine, Victims& victims, uint32_t seed, Clock::time_point end) {
  std::mt19937 random(seed);
  Counts counts;
  while (Clock::now() < end) {
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      SubmitOptions options;
      options.service_class = static_cast<ServiceClass>(random() % kServiceClasses);
      options.tenant = random() % 3;
      if (random() % 5 == 0) options.deadline_ms = 1 + random() % 800;
      auto stream = engine.submit(random_request(random), options);
      if (!stream.is_ok()) {
        ++counts.refused;
        continue;
      }
      victims.add((*stream)->id());
      streams.push_back(std::move(*stream));
    }
    for (const auto& stream : streams) {
      for (bool ended = false; !ended;) {
        const auto event = stream->next(std::chrono::hours(1));
        ended = event->ends_request;
        if (ended) count(event->token, counts);
      }
    }
  }
  return counts;
}

Status run(const std::string& model, double seconds) {
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options()));
  const Clock::time_point start = Clock::now();
  const auto after = [&](double share) {
    return start + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(seconds * share));
  };
  Victims victims;
  std::vector<Counts> counts(kFronts);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kFronts; ++i) {
    threads.emplace_back([&, i] {
      counts[i] = front(*rig.engine, victims, static_cast<uint32_t>(i + 1), after(1));
    });
  }
  for (uint32_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(100 + i);
      while (Clock::now() < after(1)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1 + random() % 60));
        rig.engine->cancel(victims.pick(random));
      }
    });
  }
  std::this_thread::sleep_until(after(kWarmShare));
  const double warm_mib = resident_mib();
  for (std::thread& thread : threads) thread.join();
  rig.engine->drain();
  const double end_mib = resident_mib();

  Counts all;
  for (const Counts& part : counts) {
    all.finished += part.finished;
    all.cancelled += part.cancelled;
    all.expired += part.expired;
    all.refused += part.refused;
    all.failed += part.failed;
  }
  fmt::print("{:.0f} s: {} requests finished, {} cancelled, {} expired, {} refused, {} failed\n",
             seconds, all.finished, all.cancelled, all.expired, all.refused, all.failed);
  const EngineStatus status = rig.engine->snapshot();
  const int64_t leaked = status.total_pages - status.free_pages - status.evictable_pages;
  const EncoderCache& cache = rig.inner->encoder_cache();
  fmt::print(
      "{} pages: {} free, {} in the prefix cache; encoder cache {} KiB in use, {} in flight; "
      "resident {:.1f} MiB after {:.0f} s, {:.1f} MiB at the end\n",
      status.total_pages, status.free_pages, status.evictable_pages, cache.in_use_bytes() >> 10,
      cache.n_in_flight(), warm_mib, seconds * kWarmShare, end_mib);
  TRIPTYCH_RETURN_IF_ERROR(rig.inner->check_invariants());
  if (all.failed > 0) return internal_error("requests failed that had no reason to");
  if (cache.in_use_bytes() > 0 || cache.n_in_flight() > 0) {
    return internal_error("the drained engine still holds features");
  }
  fmt::print("RESULT {{\"leaked_pages\": {}, \"rss_growth_mib\": {:.1f}}}\n", leaked,
             end_mib - warm_mib);
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  double seconds = 300;
  if (argc > 1) {
    const std::string text = argv[1];
    if (std::from_chars(text.data(), text.data() + text.size(), seconds).ec != std::errc() ||
        seconds < 1) {
      fmt::print(stderr, "usage: engine_soak_bench [SECONDS]\n");
      return 2;
    }
  }
  return triptych::bench::exit_code(triptych::bench::run("models/demo", seconds));
}
