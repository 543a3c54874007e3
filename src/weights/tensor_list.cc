#include "weights/tensor_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace triptych {

Result<std::vector<size_t>> sort_by_name(std::vector<TensorInfo>& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return tensors[a].name < tensors[b].name; });
  std::vector<TensorInfo> sorted;
  sorted.reserve(tensors.size());
  for (size_t i : order) sorted.push_back(std::move(tensors[i]));
  tensors = std::move(sorted);
  for (size_t i = 1; i < tensors.size(); ++i) {
    const TensorInfo& a = tensors[i - 1];
    const TensorInfo& b = tensors[i];
    if (a.name == b.name) {
      return invalid_argument(
          fmt::format("tensors \"{}\" ({}) and \"{}\" ({}) are two spellings of one tensor, {}",
                      a.original_name, a.file, b.original_name, b.file, a.name));
    }
  }
  return order;
}

}  // namespace triptych
