#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "cache/kv/prefix_index.h"
#include "engine/mask_worker.h"
#include "engine/model_runner.h"
#include "engine/sequence.h"
#include "engine/token_draw.h"
#include "observe/sample_window.h"
#include "observe/trace_writer.h"
#include "sched/plan.h"

namespace triptych {

#ifdef NDEBUG
inline constexpr bool kDebugBuild = false;
#else
inline constexpr bool kDebugBuild = true;
#endif

/// What the caches of an engine may keep, how it schedules, and how it fails.
struct EngineConfig {
  SchedulerConfig scheduler;
  bool prefix_cache = true;             ///< share KV pages of equal beginnings
  MediaCaps media;                      ///< of these the engine's own; load() takes the plan's
  bool check_invariants = kDebugBuild;  ///< after each step
  std::string failure_folder;           ///< a step that fails leaves a snapshot here; empty: none
  TraceWriter* trace = nullptr;         ///< of steps and requests; outlives the engine; null: none
};

struct EngineOptions {
  Settings settings;
  PlanLimits limits;
  EngineConfig config;

  /// Nothing of a request is kept for later ones.
  void turn_caches_off() {
    config.prefix_cache = false;
    limits.media.encoder_cache_bytes = 0;
    limits.media.pixel_cache_bytes = 0;
  }
};

/// What a step did for one answer. `token.sequence` is the id of its request; the event whose
/// `token.finish` is not kNone is the answer's last.
struct SequenceEvent {
  TokenEvent token;
  Usage usage;                       ///< so far, of this answer
  bool ends_request = false;         ///< the last event of all n answers
  std::optional<Timeline> timeline;  ///< with the answer's last event
};

/// Counts since the start.
struct EngineCounts {
  int64_t preemptions = 0;
  int64_t prefix_tokens_asked = 0;        ///< of prompts, looked for in the prefix cache
  int64_t prefix_tokens_found = 0;        ///< what timelines call cached_tokens
  std::array<int64_t, 4> media_tokens{};  ///< in prompts, by Modality
};

/// The step loop: plan, reserve, encode, forward, sample, commit over any number of sequences
/// (engine/CONTRACT.md). All calls come from one thread but now_ms().
class Engine {
 public:
  /// Loads weights and takes all memory of the plan.
  static Result<std::unique_ptr<Engine>> load(const Checkpoint& checkpoint, const Backend& backend,
                                              const EngineOptions& options);

  using Clock = std::function<double()>;  ///< milliseconds, never going back
  /// Any runner, any clock. kInvalidArgument for a scheduler configuration that cannot work.
  static Result<std::unique_ptr<Engine>> create(std::unique_ptr<StepRunner> runner,
                                                EngineConfig config, Clock now_ms);
  ~Engine();

  /// Takes a request. kInvalidArgument for an empty prompt or ids outside the vocabulary,
  /// kOutOfRange when the prompt does not fit the context, kUnavailable behind a failure().
  /// `begun`: arrival and what was done before, on the engine's clock; nothing: it arrives now.
  Result<uint64_t> submit(PreparedRequest request, const SubmitOptions& options = {},
                          std::optional<Timeline> begun = std::nullopt);

  /// One step of work. Returns what it produced, which may be nothing. A fault inside a sequence
  /// ends that sequence with a kError event and frees its memory; a fault of the whole forward pass
  /// ends all sequences that were in it, and is a failure() when it is kInternal.
  std::vector<SequenceEvent> step();
  /// Why the engine takes no more requests (kUnavailable): the first step that failed as a whole,
  /// and the file with the snapshot of it. Those that were not in it go on. Ok: it has not failed.
  const Status& failure() const { return failure_; }

  /// The answers to the request end at the next step, with what they have.
  void cancel(uint64_t request);
  bool idle() const { return sequences_.empty(); }
  /// Whether the last step ran, ended or admitted anything.
  bool did_something() const { return did_something_; }
  /// Milliseconds of the engine's clock. May be called by any thread when the clock may.
  double now_ms() const { return now_ms_(); }
  void count(int64_t& n_waiting, int64_t& n_running) const;
  const EngineCounts& counts() const { return counts_; }

  StepRunner& runner() { return *runner_; }
  /// The runner, when load() made it.
  ModelRunner& model_runner() { return *model_runner_; }
  TraceWriter* trace() const { return config_.trace; }
  const Predictors& predictors() const { return predictors_; }
  const PrefixIndex& prefix_index() const { return index_; }
  /// From the last features of a sequence to the start of the decoder's first step with them. ms.
  const SampleWindow& encode_to_decode_ms() const { return encode_to_decode_ms_; }
  const EncoderCache& encoder_cache() const { return encoder_.cache(); }
  /// What the scheduler would see now.
  Result<Snapshot> snapshot();
  /// cache/kv/CONTRACT.md and the encoder cache's sums; kInternal names what does not hold.
  Status check_invariants() const;

  /// Log-probabilities of ids[1..] given what precedes each, in windows of the context; for
  /// perplexity. The engine must be idle.
  Result<std::vector<double>> score(const std::vector<int32_t>& ids, int64_t window);

 private:
  using Events = std::vector<SequenceEvent>;
  struct Row;
  /// When the parts of a step began and the last one ended. ms.
  struct StepTimes {
    double plan = 0;
    double encode = 0;
    double forward = 0;
    double end = 0;
  };

  Engine(std::unique_ptr<StepRunner> runner, const EngineConfig& config, Clock now_ms);
  Status check(const PreparedRequest& request) const;
  Result<SequencePages> make_pages(const PreparedRequest& request, const SubmitOptions& options,
                                   const std::vector<MediaUse>& media);
  Result<SequenceState> describe(Sequence& sequence);
  using PageKeys = std::unordered_set<PrefixKey, ContentKeyHash>;
  PageKeys pages_coming() const;
  bool waits_for(const Sequence& sequence, int64_t n_found, const PageKeys& coming) const;
  void describe_media(const Sequence& sequence, SequenceState& state) const;

  void end_cancelled(Events& events);
  Status catch_up();
  void start(const StepPlan& plan, Events& events);
  Status admit(Sequence& sequence);
  void preempt(Sequence& sequence);
  void trace_step(const StepPlan& plan, const StepTimes& times) const;
  void note_stage(Sequence& sequence);
  void encode(const StepPlan& plan, Events& events);
  void deliver(const MediaId& feature, const MediaFeatures& features);
  void ask_again(const MediaId& feature);
  std::vector<Row> reserve(const StepPlan& plan, Events& events);
  void forward(const StepPlan& plan, Events& events);
  void commit(const Row& row, const float* logits, double step_ms, Events& events);
  void draw(Sequence& sequence, std::span<const float> logits, Events& events);
  Status take_token(Sequence& sequence, DrawnToken drawn, Events& events);
  Result<Sampler> make_sampler(const PreparedRequest& request, uint64_t seed,
                               uint32_t choice) const;
  std::vector<Sequence*> fork(Sequence& sequence, Events& events);
  void emit(const Sequence& sequence, TokenEvent event, Events& events);
  int64_t n_open(uint64_t group) const;
  void finish(Sequence& sequence, TokenEvent last, Events& events);
  Status fail_engine(const Status& cause, const StepPlan* plan);
  void fail_all(const Status& cause, const StepPlan* plan, Events& events);
  std::string write_failure(const Status& cause, const StepPlan* plan) const;
  void fail(Sequence& sequence, Status error, Events& events) {
    finish(sequence, {.finish = FinishReason::kError, .error = std::move(error)}, events);
  }
  Sequence* find(uint64_t id);
  Status score_window(std::span<const int32_t> ids, std::span<const int32_t> pages,
                      const View& logits, std::vector<double>& out);

  std::unique_ptr<StepRunner> runner_;
  TraceWriter::Track track_ = 0;         ///< of this thread in the trace
  ModelRunner* model_runner_ = nullptr;  ///< runner_, when load() made it
  EngineConfig config_;
  Clock now_ms_;
  Predictors predictors_;
  FairnessState fairness_;
  PrefixIndex index_;
  MediaEncoder encoder_;
  SeedSource seeds_;
  SamplerScratch sampler_scratch_;
  MaskWorker masks_;  ///< idle outside a forward pass
  uint64_t next_id_ = 1;
  bool did_something_ = false;
  Status failure_;
  SampleWindow encode_to_decode_ms_;
  EngineCounts counts_;
  std::map<uint64_t, std::unique_ptr<Sequence>> sequences_;  ///< by arrival
};

}  // namespace triptych
