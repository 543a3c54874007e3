#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "media/image/test_pixels.h"
#include "media/sandbox/sandbox.h"

/// What the tests of the sandbox share.
namespace triptych::test {

/// Squashes a picture to 32 x 24 and normalises it.
inline ImageRecipe small_recipe() {
  ImageRecipe recipe;
  recipe.resize_rule = ImageRecipe::ResizeRule::kExact;
  recipe.size_height = 24;
  recipe.size_width = 32;
  recipe.mean = {0.5, 0.4, 0.3};
  recipe.std = {0.3, 0.25, 0.2};
  return recipe;
}

/// The values of a picture, or the error, as Sandbox gives them.
inline Result<std::vector<float>> in_sandbox(Sandbox& sandbox, const std::string& file,
                                             const ImageRecipe& recipe = small_recipe(),
                                             const DecodeOptions& options = {}) {
  std::vector<float> values;
  if (const auto header = probe_image(as_bytes(file), options.limits); header.is_ok()) {
    const auto plan = plan_image(header->width, header->height, recipe);
    if (plan.is_ok()) values.resize(static_cast<size_t>(3 * plan->width * plan->height));
  }
  TRIPTYCH_RETURN_IF_ERROR(sandbox.preprocess(as_bytes(file), recipe, options, values));
  return values;
}

/// The same in this process.
inline Result<std::vector<float>> in_process(const std::string& file,
                                             const ImageRecipe& recipe = small_recipe(),
                                             const DecodeOptions& options = {}) {
  ThreadPool pool(1);
  TRIPTYCH_ASSIGN_OR_RETURN(PixelTensor pixels,
                            preprocess_image(as_bytes(file), recipe, options, pool));
  return std::move(pixels.values);
}

/// What the system says of a process: 'R', 'S', 'T', 'Z', ... (0: there is none), and its parent.
struct ProcessState {
  char state = 0;
  pid_t parent = 0;
};
inline ProcessState process_state(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  ProcessState out;
  const size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos) return out;
  std::istringstream rest(line.substr(name_end + 2));
  rest >> out.state >> out.parent;
  return out;
}
inline bool has_ended(pid_t pid) {
  const char state = process_state(pid).state;
  return state == 0 || state == 'Z' || state == 'X';
}

/// False when it does not within ten seconds.
inline bool becomes(const std::function<bool()>& wanted) {
  for (int i = 0; i < 2000; ++i) {
    if (wanted()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace triptych::test
