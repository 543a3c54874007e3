#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/checked.h"
#include "media/image/pixel_pipeline.h"
#include "media/image/recipe.h"

namespace triptych {
namespace {

PixelTensor run_plan(const ImageView& image, const ImageRecipe& recipe, const ImagePlan& plan,
                     ThreadPool& pool) {
  PixelPipeline pipeline(recipe, plan);
  const int64_t n_rows = pipeline.end_row() - pipeline.first_row();
  pool.parallel_for(ceil_div(n_rows, kRowsAtOnce), 4, [&](int64_t begin, int64_t end) {
    PaddedRows rows = pipeline.make_rows();
    for (int64_t block = begin; block < end; ++block) {
      const int64_t y = pipeline.first_row() + block * kRowsAtOnce;
      const int64_t n = std::min(kRowsAtOnce, pipeline.end_row() - y);
      for (int64_t i = 0; i < n; ++i) {
        split_channels(image.row(y + i), image.width, rows.source_row(i));
      }
      pipeline.put_rows(y, n, rows);
    }
  });
  return pipeline.finish(pool);
}

}  // namespace

Result<PixelTensor> apply_recipe(const ImageView& image, const ImageRecipe& recipe,
                                 const ImagePlan& plan, ThreadPool& pool) {
  if (image.width != plan.source_width || image.height != plan.source_height) {
    return invalid_argument(fmt::format("a picture of {} x {} with a plan for {} x {}", image.width,
                                        image.height, plan.source_width, plan.source_height));
  }
  try {
    return run_plan(image, recipe, plan, pool);
  } catch (const std::bad_alloc&) {
    return resource_exhausted(
        fmt::format("no memory to preprocess {} x {} pixels", image.width, image.height));
  }
}

}  // namespace triptych
