#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "media/image/decoders.h"
#include "media/image/jpeg_strips.h"
#include "media/image/pixel_pipeline.h"
#include "media/image/recipe.h"

namespace triptych {
namespace {

/// Strips on their way from the thread that decodes to those that resize, and back for reuse.
class StripQueue {
 public:
  StripQueue(const JpegStripReader& reader, int n_strips) {
    for (int i = 0; i < n_strips; ++i) free_.push_back(reader.make_strip());
  }

  std::optional<JpegStrip> take_free() {
    const std::lock_guard lock(mutex_);
    return take(&free_);
  }
  void give_free(JpegStrip strip) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(strip));
    changed_.notify_all();
  }
  void give_ready(JpegStrip strip) {
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(strip));
    changed_.notify_all();
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }
  std::optional<JpegStrip> take_ready() {
    const std::lock_guard lock(mutex_);
    return take(&ready_);
  }
  /// Waits for a ready strip; nothing when there will be none any more.
  std::optional<JpegStrip> wait_ready() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return finished_ || !ready_.empty(); });
    return take(&ready_);
  }
  /// Waits until a strip is free or ready.
  void wait_any() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !free_.empty() || !ready_.empty(); });
  }

 private:
  static std::optional<JpegStrip> take(std::vector<JpegStrip>* from) {
    if (from->empty()) return std::nullopt;
    std::optional<JpegStrip> strip(std::move(from->back()));
    from->pop_back();
    return strip;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<JpegStrip> free_;
  std::vector<JpegStrip> ready_;
  bool finished_ = false;
};

/// One thread's part in turning strips into resized rows.
class StripConsumer {
 public:
  StripConsumer(const JpegStripReader& reader, const ImagePlan& plan, PixelPipeline* pipeline)
      : reader_(reader),
        pipeline_(pipeline),
        rows_(pipeline->make_rows()),
        scratch_(plan.source_width) {}

  void consume(const JpegStrip& strip) {
    const int64_t begin = std::max(strip.y, pipeline_->first_row());
    const int64_t end = std::min(strip.y + strip.n_rows, pipeline_->end_row());
    for (int64_t y = begin; y < end; y += kRowsAtOnce) {
      const int64_t n = std::min(kRowsAtOnce, end - y);
      for (int64_t i = 0; i < n; ++i) {
        reader_.rgb_row(strip, y + i, &scratch_, rows_.source_row(i));
        rows_.close_row(i);
      }
      pipeline_->put_rows(y, n, rows_);
    }
  }

 private:
  const JpegStripReader& reader_;
  PixelPipeline* pipeline_;
  PaddedRows rows_;
  JpegStripReader::Scratch scratch_;
};

/// Decodes strip after strip. When the others fall behind, this thread helps instead of waiting, so
/// that one thread alone gets through as well.
Status produce_strips(JpegStripReader* reader, StripQueue* queue, StripConsumer* helper) {
  std::optional<JpegStrip> previous;
  for (int64_t i = 0; i < reader->n_strips(); ++i) {
    std::optional<JpegStrip> strip = queue->take_free();
    while (!strip) {
      if (std::optional<JpegStrip> ready = queue->take_ready()) {
        helper->consume(*ready);
        strip = std::move(ready);
      } else {
        queue->wait_any();
        strip = queue->take_free();
      }
    }
    TRIPTYCH_RETURN_IF_ERROR(reader->read(i, &*strip, previous ? &*previous : nullptr));
    if (previous) queue->give_ready(std::move(*previous));
    previous = std::move(strip);
  }
  if (previous) queue->give_ready(std::move(*previous));
  return Status::ok();
}

Result<PixelTensor> preprocess_jpeg(std::span<const std::byte> bytes, const ImageHeader& header,
                                    const ImageRecipe& recipe, ThreadPool& pool) {
  TRIPTYCH_ASSIGN_OR_RETURN(const ImagePlan plan, plan_image(header.width, header.height, recipe));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto source, JpegSource::open(bytes, header));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto reader, JpegStripReader::start(source.get()));
  PixelPipeline pipeline(recipe, plan);
  StripQueue queue(*reader, pool.size() + 2);
  std::vector<StripConsumer> consumers;
  consumers.reserve(static_cast<size_t>(pool.size()));
  for (int i = 0; i < pool.size(); ++i) consumers.emplace_back(*reader, plan, &pipeline);
  Status status;
  pool.run([&](int worker) {
    StripConsumer& consumer = consumers[static_cast<size_t>(worker)];
    if (worker == 0) {
      status = produce_strips(reader.get(), &queue, &consumer);
      queue.finish();
    }
    while (std::optional<JpegStrip> strip = queue.wait_ready()) {
      consumer.consume(*strip);
      queue.give_free(std::move(*strip));
    }
  });
  TRIPTYCH_RETURN_IF_ERROR(status);
  return pipeline.finish(pool);
}

}  // namespace

Result<PixelTensor> preprocess_image(std::span<const std::byte> bytes, const ImageRecipe& recipe,
                                     const DecodeOptions& options, ThreadPool& pool) {
  TRIPTYCH_ASSIGN_OR_RETURN(const ImageHeader header, probe_image(bytes, options.limits));
  try {
    if (header.format == ImageFormat::kJpeg && header.orientation == 1) {
      return preprocess_jpeg(bytes, header, recipe, pool);
    }
    TRIPTYCH_ASSIGN_OR_RETURN(const Image image, decode_image(bytes, options));
    TRIPTYCH_ASSIGN_OR_RETURN(const ImagePlan plan,
                              plan_image(image.width(), image.height(), recipe));
    return apply_recipe(image.view(), recipe, plan, pool);
  } catch (const std::bad_alloc&) {
    return resource_exhausted(fmt::format("{}: no memory to preprocess {} x {} pixels",
                                          image_format_name(header.format), header.width,
                                          header.height));
  }
}

}  // namespace triptych
