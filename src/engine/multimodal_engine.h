#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "engine/prep_pool.h"
#include "engine/token_stream.h"

namespace triptych {

enum class EngineHealth : uint8_t {
  kReady,
  kDraining,  ///< finishes what it has and takes no more
  kFailed,    ///< the same, because a step failed
};

/// Requests since the start that MultiModalEngine::submit told to come later, by what was full.
struct RefusalCounts {
  int64_t queue = 0;   ///< max_open or max_requests of PrepLimits
  int64_t memory = 0;  ///< its max_host_bytes
};

/// A look at the engine between two steps.
struct EngineStatus {
  EngineHealth health = EngineHealth::kReady;
  Status failure;  ///< of kFailed: the cause, and the file with the snapshot (Engine::failure)
  int64_t n_preparing = 0;
  uint64_t host_bytes = 0;  ///< of all requests in work (PrepLimits::max_host_bytes)
  int64_t n_waiting = 0;
  int64_t n_running = 0;
  int64_t free_pages = 0;
  int64_t evictable_pages = 0;
  int64_t total_pages = 0;
  double step_error_p95 = 0;          ///< relative, of the predicted step times
  SampleSummary encode_to_decode_ms;  ///< Engine::encode_to_decode_ms
  PrefixIndexStats prefix;
  EncoderCacheStats encoder;
  EngineCounts counts;
  RefusalCounts refused;
};

/// The engine for many callers: requests are prepared on threads of their own, one thread drives
/// the step loop, and each request has a stream of its events. Thread-safe.
class MultiModalEngine {
 public:
  MultiModalEngine(std::unique_ptr<Engine> engine, std::shared_ptr<const RequestPreparer> preparer,
                   const PrepLimits& limits);
  /// Cancels what is left: every stream that has not ended ends with kCancelled.
  ~MultiModalEngine();
  MultiModalEngine(const MultiModalEngine&) = delete;
  MultiModalEngine& operator=(const MultiModalEngine&) = delete;

  /// Refuses at once what cannot be taken: the caller's fault by the headers, a full queue, no host
  /// memory, an engine that drains or has failed (kUnavailable). Everything later is an event of
  /// the stream. Arrival and deadline count from here.
  /// `signal`: for a reader of many streams, raised once a step for all that the step brought.
  Result<std::shared_ptr<TokenStream>> submit(Request request, const SubmitOptions& options = {},
                                              std::shared_ptr<EventSignal> signal = nullptr);
  /// The stream ends with kCancelled at the next step, also while the request is being prepared;
  /// nothing happens when it has ended.
  void cancel(uint64_t id);

  EngineStatus snapshot() const;
  /// Takes no more requests and returns when all have ended.
  void drain();

 private:
  struct Arrival {
    uint64_t id = 0;
    Result<PreparedRequest> prepared;
    HostBudget::Share host;
  };
  struct Open {
    std::shared_ptr<TokenStream> stream;
    SubmitOptions options;
    Timeline timeline;  ///< until it is in the engine
    uint32_t n_choices = 1;
    uint64_t sequence = 0;  ///< 0 while it is prepared
    HostBudget::Share host = {};

    double expires_ms() const { return options.expires_ms(timeline.arrival_ms); }
  };
  using Requests = std::map<uint64_t, Open>;

  void run();
  void wait_for_work(std::unique_lock<std::mutex>& lock, bool did_something);
  bool begin(uint64_t id, PrepStage stage);
  void start(Arrival arrival);
  void route(std::vector<SequenceEvent> events);
  void push(const Open& request, SequenceEvent event) const;
  EngineStatus status_now() const;
  // With `mutex_` held:
  void take_cancels();
  void end_expired();
  Requests::iterator end(Requests::iterator request, FinishReason reason, Status error);

  std::unique_ptr<Engine> engine_;
  const size_t max_open_;
  int64_t n_refused_ = 0;  ///< for max_open_
  HostBudget host_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable idle_;
  std::vector<Arrival> arrivals_;
  std::vector<uint64_t> cancels_;
  Requests open_;
  double next_expiry_ms_ = kNever;            ///< of requests that are being prepared, or earlier
  std::map<uint64_t, uint64_t> by_sequence_;  ///< the engine thread's own
  EngineStatus status_;
  uint64_t next_id_ = 1;
  bool draining_ = false;
  bool stopping_ = false;
  std::unique_ptr<PrepPool> prep_;
  std::thread thread_;
};

}  // namespace triptych
