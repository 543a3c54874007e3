// What it costs to decode and preprocess pictures in sandboxed processes, and how soon one that was
// killed has a successor.
//
//   sandbox_bench MODEL_DIR [ROUNDS]
//
// Ends with a RESULT line.

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <jpeglib.h>

#include "base/clock.h"
#include "base/log.h"
#include "media/image/recipe.h"
#include "media/sandbox/sandbox.h"

namespace triptych {
namespace {

constexpr int kKills = 50;

/// A JPEG with the frequencies of a photo: waves of five lengths and some grain.
std::string make_jpeg(int width, int height) {
  jpeg_compress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* data = nullptr;
  unsigned long n_bytes = 0;
  jpeg_mem_dest(&cinfo, &data, &n_bytes);
  cinfo.image_width = static_cast<JDIMENSION>(width);
  cinfo.image_height = static_cast<JDIMENSION>(height);
  cinfo.input_components = 3;
  cinfo.in_color_space = JCS_RGB;
  jpeg_set_defaults(&cinfo);  // with chroma at half resolution
  jpeg_set_quality(&cinfo, 90, TRUE);
  jpeg_start_compress(&cinfo, TRUE);
  std::vector<unsigned char> row(static_cast<size_t>(width) * 3);
  uint32_t noise = 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double wave = 0;
      for (const double length : {900.0, 210.0, 55.0, 17.0, 6.0}) {
        wave += std::sqrt(length) * std::sin((x + 0.6 * y) / length) * std::cos(y / length);
      }
      for (int c = 0; c < 3; ++c) {
        noise = noise * 1664525u + 1013904223u;
        const double grain = static_cast<double>(noise >> 28) - 7.5;
        row[static_cast<size_t>(3 * x + c)] =
            static_cast<unsigned char>(std::clamp(120 + wave * (1 + 0.2 * c) + grain, 0.0, 255.0));
      }
    }
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&cinfo, &line, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::string out(reinterpret_cast<const char*>(data), n_bytes);
  std::free(data);
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  double in_process_ms = 0;
  double sandboxed_ms = 0;
  double cost_ms = 0;
};

Result<Times> measure(Sandbox& sandbox, const std::string& file, const ImageRecipe& recipe,
                      int rounds) {
  const std::span bytes(reinterpret_cast<const std::byte*>(file.data()), file.size());
  ThreadPool pool(1);
  TRIPTYCH_ASSIGN_OR_RETURN(const ImageHeader header, probe_image(bytes));
  TRIPTYCH_ASSIGN_OR_RETURN(const ImagePlan plan, plan_image(header.width, header.height, recipe));
  std::vector<float> here(static_cast<size_t>(3 * plan.width * plan.height));
  std::vector<float> there(here.size());
  std::vector<double> in_process, sandboxed, cost;
  for (int round = 0; round <= rounds; ++round) {
    const double start = steady_ms();
    TRIPTYCH_ASSIGN_OR_RETURN(const PixelTensor pixels, preprocess_image(bytes, recipe, {}, pool));
    std::copy(pixels.values.begin(), pixels.values.end(), here.begin());
    const double middle = steady_ms();
    TRIPTYCH_RETURN_IF_ERROR(sandbox.preprocess(bytes, recipe, {}, there));
    const double end = steady_ms();
    if (here != there) return internal_error("the two ways differ");
    if (round == 0) continue;  // warm-up
    in_process.push_back(middle - start);
    sandboxed.push_back(end - middle);
    cost.push_back(sandboxed.back() - in_process.back());
  }
  return Times{median(in_process), median(sandboxed), median(cost)};
}

/// How long it takes until a killed worker has a successor that is ready.
std::vector<double> replacements(const Sandbox& sandbox) {
  std::vector<double> out;
  for (int i = 0; i < kKills; ++i) {
    const std::vector<pid_t> before = sandbox.worker_pids();
    const double start = steady_ms();
    (void)::kill(before[static_cast<size_t>(i) % before.size()], SIGKILL);
    std::vector<pid_t> now = before;
    while (now == before || now.size() < before.size()) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      now = sandbox.worker_pids();
    }
    out.push_back(steady_ms() - start);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Status run(const std::string& model_dir, int rounds) {
  set_log_level(LogLevel::kError);  // workers that are killed below are no news
  TRIPTYCH_ASSIGN_OR_RETURN(const auto sandbox, Sandbox::start());  // before there are threads
  (void)::setpriority(PRIO_PROCESS, 0, 10);  // as the server's threads of preparation, and workers
  TRIPTYCH_ASSIGN_OR_RETURN(const ImageRecipe recipe, load_image_recipe(model_dir));
  TRIPTYCH_ASSIGN_OR_RETURN(const Times small,
                            measure(*sandbox, make_jpeg(1024, 1024), recipe, rounds));
  TRIPTYCH_ASSIGN_OR_RETURN(
      const Times large, measure(*sandbox, make_jpeg(4000, 3000), recipe, std::max(1, rounds / 5)));
  const std::vector<double> replaced = replacements(*sandbox);
  fmt::print("JPEG to the pixels of {}, one thread, median of {} (12 megapixels: {})\n", model_dir,
             rounds, std::max(1, rounds / 5));
  fmt::print("{:<26}{:>12}{:>12}{:>12}\n", "", "in process", "sandboxed", "cost");
  for (const auto& [name, times] :
       {std::pair{"1 megapixel, ms", small}, {"12 megapixels, ms", large}}) {
    fmt::print("{:<26}{:>12.2f}{:>12.2f}{:>12.2f}\n", name, times.in_process_ms, times.sandboxed_ms,
               times.cost_ms);
  }
  fmt::print("a killed worker is replaced within {:.2f} ms (median), {:.2f} ms (worst of {})\n",
             replaced[replaced.size() / 2], replaced.back(), replaced.size());
  fmt::print("workers are {} a filter of system calls\n",
             sandbox->is_filtered() ? "behind" : "without");
  fmt::print(
      "RESULT {{\"in_process_1mp_ms\": {:.3f}, \"sandboxed_1mp_ms\": {:.3f}, \"cost_1mp_ms\": "
      "{:.3f}, \"cost_12mp_ms\": {:.3f}, \"replace_ms\": {:.3f}, \"replace_worst_ms\": {:.3f}, "
      "\"filtered\": {}}}\n",
      small.in_process_ms, small.sandboxed_ms, small.cost_ms, large.cost_ms,
      replaced[replaced.size() / 2], replaced.back(), sandbox->is_filtered() ? 1 : 0);
  return Status::ok();
}

}  // namespace
}  // namespace triptych

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 101;
  if (argc < 2 || argc > 3 || rounds < 1) {
    fmt::print(stderr, "usage: sandbox_bench MODEL_DIR [ROUNDS]\n");
    return 2;
  }
  const triptych::Status status = triptych::run(argv[1], rounds);
  if (!status.is_ok()) fmt::print(stderr, "sandbox_bench: {}\n", status.message());
  return triptych::exit_code(status.code());
}
