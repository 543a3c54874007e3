// Time from an encoded picture to the pixel tensor of a checkpoint's recipe.
//
//   preprocess_bench PICTURE MODEL_DIR [ROUNDS]
//
// TRIPTYCH_THREADS sets the threads. Ends with a RESULT line; bench/preprocess/run.py puts the
// processors of transformers beside it.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/settings.h"
#include "media/image/recipe.h"
#include "media/image/row_kernels.h"

namespace triptych {
namespace {

struct Times {
  double decode_ms = 0;
  double resize_ms = 0;
  double whole_ms = 0;
};

template <typename F>
double timed_ms(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result<Times> measure(std::span<const std::byte> bytes, const ImageRecipe& recipe, int rounds,
                      ThreadPool& pool) {
  std::vector<double> decode;
  std::vector<double> resize;
  std::vector<double> whole;
  for (int round = 0; round <= rounds; ++round) {
    Result<Image> image = internal_error("not decoded");
    decode.push_back(timed_ms([&] { image = decode_image(bytes); }));
    if (!image.is_ok()) return image.status();
    TRIPTYCH_ASSIGN_OR_RETURN(const ImagePlan plan,
                              plan_image(image->width(), image->height(), recipe));
    Result<PixelTensor> apart = internal_error("not resized");
    resize.push_back(timed_ms([&] { apart = apply_recipe(image->view(), recipe, plan, pool); }));
    Result<PixelTensor> streamed = internal_error("not preprocessed");
    whole.push_back(timed_ms([&] { streamed = preprocess_image(bytes, recipe, {}, pool); }));
    if (!apart.is_ok()) return apart.status();
    if (!streamed.is_ok()) return streamed.status();
    if (apart->values != streamed->values) return internal_error("the two ways differ");
  }
  for (auto* values : {&decode, &resize, &whole}) values->erase(values->begin());  // warm-up
  return Times{median(decode), median(resize), median(whole)};
}

int run(const std::string& picture, const std::string& model_dir, int rounds) {
  const auto report = [](const Status& status) {
    fmt::print(stderr, "preprocess_bench: {}\n", status.message());
    return exit_code(status.code());
  };
  const auto threads = Settings::from_environment().thread_count();
  if (!threads.is_ok()) return report(threads.status());
  const auto file = read_file(picture);
  if (!file.is_ok()) return report(file.status());
  const auto recipe = load_image_recipe(model_dir);
  if (!recipe.is_ok()) return report(recipe.status());
  ThreadPool pool(*threads);
  const std::span bytes(reinterpret_cast<const std::byte*>(file->data()), file->size());
  const auto times = measure(bytes, *recipe, rounds, pool);
  if (!times.is_ok()) return report(times.status());
  fmt::print("{} with {}, {} threads, {}, median of {}\n", picture, recipe->processor, *threads,
             row_kernels_level(), rounds);
  fmt::print("{:<42}{:>8.1f} ms\n", "decode alone, one thread", times->decode_ms);
  fmt::print("{:<42}{:>8.1f} ms\n", "resize and normalise alone", times->resize_ms);
  fmt::print("{:<42}{:>8.1f} ms\n", "file to pixel tensor, overlapped", times->whole_ms);
  fmt::print(
      "RESULT {{\"preprocess_12mp_ms\": {:.3f}, \"decode_ms\": {:.3f}, \"resize_ms\": {:.3f}}}\n",
      times->whole_ms, times->decode_ms, times->resize_ms);
  return 0;
}

}  // namespace
}  // namespace triptych

int main(int argc, char** argv) {
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
  if (argc < 3 || argc > 4 || rounds < 1) {
    fmt::print(stderr, "usage: preprocess_bench PICTURE MODEL_DIR [ROUNDS]\n");
    return 2;
  }
  return triptych::run(argv[1], argv[2], rounds);
}
