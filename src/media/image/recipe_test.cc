#include "media/image/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "media/image/test_pixels.h"

namespace triptych {
namespace {

using testing::HasSubstr;

Result<ImageRecipe> parse(const std::string& text) {
  static std::vector<std::unique_ptr<Json>> kept;  // a JsonRef borrows
  auto json = parse_json(text);
  EXPECT_TRUE(json.is_ok()) << json.status().message();
  kept.push_back(std::make_unique<Json>(std::move(json).value()));
  return parse_image_recipe(JsonRef(*kept.back(), "preprocessor_config.json"));
}

void expect_error(const std::string& text, StatusCode code, const std::string& message) {
  const auto recipe = parse(text);
  ASSERT_FALSE(recipe.is_ok()) << text;
  EXPECT_EQ(recipe.status().code(), code) << recipe.status().message();
  EXPECT_THAT(recipe.status().message(), HasSubstr(message));
  EXPECT_THAT(recipe.status().message(), HasSubstr("preprocessor_config.json"));
}

PixelTensor run(const Json& entry, ThreadPool& pool) {
  const auto recipe = parse_image_recipe(JsonRef(*entry.find("config"), "config"));
  EXPECT_TRUE(recipe.is_ok()) << recipe.status().message();
  const auto& in = entry.find("in")->elements();
  const Image image = test::noise_image(in[0].int_value(), in[1].int_value(),
                                        static_cast<uint32_t>(entry.find("seed")->int_value()));
  const auto plan = plan_image(image.width(), image.height(), *recipe);
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  auto out = apply_recipe(image.view(), *recipe, *plan, pool);
  EXPECT_TRUE(out.is_ok()) << out.status().message();
  EXPECT_EQ(plan->width, out->width);
  EXPECT_EQ(plan->height, out->height);
  return std::move(out).value();
}

TEST(Recipe, EqualsTransformersBitForBit) {
  const Json golden = test::load_golden("recipe.json");
  const auto& cases = golden.find("cases")->elements();
  ASSERT_GT(cases.size(), 80u);
  for (const int n_threads : {1, 2}) {
    ThreadPool pool(n_threads);
    for (const Json& entry : cases) {
      const PixelTensor out = run(entry, pool);
      const auto& size = entry.find("out")->elements();
      ASSERT_EQ(out.width, size[0].int_value()) << entry.dump();
      ASSERT_EQ(out.height, size[1].int_value()) << entry.dump();
      EXPECT_EQ(test::crc32(out.values.data(), out.values.size() * sizeof(float)),
                entry.find("crc32")->int_value())
          << entry.dump() << " starts with " << out.values[0];
    }
  }
}

TEST(Recipe, SmallTensorsEqualTransformers) {
  ThreadPool pool(1);
  const Json golden = test::load_golden("small_tensors.json");
  for (const Json& entry : golden.find("cases")->elements()) {
    const PixelTensor out = run(entry, pool);
    const auto& values = entry.find("values")->elements();
    ASSERT_EQ(out.values.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(out.values[i], static_cast<float>(values[i].number_value())) << i;
    }
  }
}

TEST(Recipe, SizesEqualTransformers) {
  const auto shortest = parse(R"({"image_processor_type": "CLIPImageProcessor", "size": 336})");
  const auto capped = parse(R"({"image_processor_type": "CLIPImageProcessor",
      "size": {"shortest_edge": 336, "longest_edge": 672}, "do_center_crop": false})");
  const auto within = parse(R"({"image_processor_type": "SiglipImageProcessor",
      "size": {"max_height": 384, "max_width": 512}})");
  ASSERT_TRUE(shortest.is_ok() && capped.is_ok() && within.is_ok());
  const Json golden = test::load_golden("sizes.json");
  for (const Json& row : golden.find("rows")->elements()) {
    const auto& n = row.elements();
    size_t column = 2;
    for (const auto* recipe : {&*shortest, &*capped, &*within}) {
      const int64_t height = n[column++].int_value();
      const int64_t width = n[column++].int_value();
      const auto plan = plan_image(n[0].int_value(), n[1].int_value(), *recipe);
      if (width < 1 || height < 1) {
        EXPECT_FALSE(plan.is_ok()) << row.dump();
        continue;
      }
      ASSERT_TRUE(plan.is_ok()) << plan.status().message();
      EXPECT_EQ(plan->resized_width, width) << row.dump();
      EXPECT_EQ(plan->resized_height, height) << row.dump();
    }
  }
}

TEST(Recipe, LongestEdgeKeepsTheRatio) {
  const auto recipe = parse(R"({"image_processor_type": "SiglipImageProcessor",
      "size": {"longest_edge": 100}})");
  ASSERT_TRUE(recipe.is_ok());
  const auto plan = plan_image(400, 301, *recipe);
  ASSERT_TRUE(plan.is_ok());
  EXPECT_EQ(plan->width, 100);
  EXPECT_EQ(plan->height, 75);
  EXPECT_EQ(plan_image(1, 5000, *recipe)->width, 1);
}

TEST(Recipe, ClassDefaultsAndSpellings) {
  for (const char* name :
       {"CLIPImageProcessor", "CLIPImageProcessorFast", "CLIPImageProcessorPil"}) {
    const auto recipe = parse(std::string(R"({"image_processor_type": ")") + name + "\"}");
    ASSERT_TRUE(recipe.is_ok()) << name;
    EXPECT_EQ(recipe->size_shortest, 224);
    EXPECT_TRUE(recipe->center_crop);
    EXPECT_EQ(recipe->filter, ResampleFilter::kBicubic);
    EXPECT_EQ(recipe->mean[0], 0.48145466);
  }
  const auto old = parse(R"({"feature_extractor_type": "CLIPFeatureExtractor", "size": 336,
      "crop_size": 336, "resample": 2})");
  ASSERT_TRUE(old.is_ok());
  EXPECT_EQ(old->size_shortest, 336);
  EXPECT_EQ(old->filter, ResampleFilter::kBilinear);
  // null is absent
  const auto nulls = parse(R"({"image_processor_type": "SiglipImageProcessor", "size": null,
      "do_center_crop": null, "image_mean": null})");
  ASSERT_TRUE(nulls.is_ok());
  EXPECT_EQ(nulls->size_height, 224);
  EXPECT_FALSE(nulls->center_crop);
}

TEST(Recipe, NestedFileWins) {
  const std::string dir = testing::TempDir() + "/recipe_nested";
  std::filesystem::create_directories(dir);
  const std::string legacy = R"({"image_processor_type": "CLIPImageProcessor", "size": 100})";
  ASSERT_TRUE(write_file(dir + "/preprocessor_config.json", legacy).is_ok());
  ASSERT_TRUE(write_file(dir + "/processor_config.json", R"({"patch_size": 14})").is_ok());
  EXPECT_EQ(load_image_recipe(dir)->size_shortest, 100);
  ASSERT_TRUE(write_file(dir + "/processor_config.json", R"({"image_processor":
      {"image_processor_type": "SiglipImageProcessor", "size": {"height": 30, "width": 40}}})")
                  .is_ok());
  const auto nested = load_image_recipe(dir);
  ASSERT_TRUE(nested.is_ok());
  EXPECT_EQ(nested->size_width, 40);
  ASSERT_TRUE(write_file(dir + "/processor_config.json", R"({"image_processor":
      {"image_processor_type": "SiglipImageProcessor", "size": {"height": "x", "width": 40}}})")
                  .is_ok());
  EXPECT_THAT(load_image_recipe(dir).status().message(),
              HasSubstr("processor_config.json: image_processor.size.height"));
}

TEST(Recipe, MissingFilesAreNamed) {
  const auto recipe = load_image_recipe("/nonexistent/model");
  ASSERT_FALSE(recipe.is_ok());
  EXPECT_EQ(recipe.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(recipe.status().message(), HasSubstr("/nonexistent/model"));
}

TEST(Recipe, OverridesWin) {
  const auto file = parse_json(R"({"image_processor_type": "CLIPImageProcessor", "resample": 2})");
  const auto request = parse_json(R"({"resample": 1, "size": {"shortest_edge": 50}})");
  const JsonRef overrides(*request, "request");
  const auto recipe = parse_image_recipe(JsonRef(*file, "file"), &overrides);
  ASSERT_TRUE(recipe.is_ok());
  EXPECT_EQ(recipe->filter, ResampleFilter::kLanczos);
  EXPECT_EQ(recipe->size_shortest, 50);
  const auto wrong = parse_json(R"({"resample": 9})");
  const JsonRef bad(*wrong, "request");
  EXPECT_THAT(parse_image_recipe(JsonRef(*file, "file"), &bad).status().message(),
              HasSubstr("request: resample"));
}

TEST(Recipe, WrongValuesNameTheirKey) {
  const std::string clip = R"({"image_processor_type": "CLIPImageProcessor", )";
  const auto bad = StatusCode::kInvalidArgument;
  expect_error(clip + R"("size": {"height": 224}})", bad, "size");
  expect_error(clip + R"("size": {"shortest_edge": "224"}})", bad, "size.shortest_edge");
  expect_error(clip + R"("size": {"shortest_edge": 0}})", bad, "size.shortest_edge");
  expect_error(clip + R"("size": {"min_pixels": 1, "max_pixels": 2}})", bad, "size");
  expect_error(clip + R"("size": "big"})", bad, "size");
  expect_error(clip + R"("crop_size": {"shortest_edge": 3}})", bad, "crop_size");
  expect_error(clip + R"("resample": 6})", bad, "resample");
  expect_error(clip + R"("do_resize": "yes"})", bad, "do_resize");
  expect_error(clip + R"("image_mean": [0.5, 0.5]})", bad, "image_mean");
  expect_error(clip + R"("image_std": [0.5, 0, 0.5]})", bad, "image_std");
  expect_error(clip + R"("rescale_factor": []})", bad, "rescale_factor");
  expect_error(clip + R"("do_pad": true, "pad_size": 300})", StatusCode::kUnsupported, "pad_size");
  expect_error(R"({"size": 224})", bad, "image_processor_type");
  expect_error(R"({"image_processor_type": "ViTImageProcessor"})", StatusCode::kUnsupported,
               "SiglipImageProcessor");
  expect_error(R"({"image_processor_type": "SiglipImageProcessor", "do_center_crop": true})", bad,
               "crop_size");
  expect_error("[]", bad, "expected an object");
}

TEST(Recipe, PlanRefusesWhatCannotBe) {
  const auto recipe = parse(R"({"image_processor_type": "CLIPImageProcessor", "size": 336,
      "do_center_crop": false})");
  EXPECT_TRUE(
      plan_image(1, 60000, *parse(R"({"image_processor_type": "CLIPImageProcessor"})")).is_ok());
  EXPECT_EQ(plan_image(0, 5, *recipe).status().code(), StatusCode::kInvalidArgument);
  const auto big = parse(R"({"image_processor_type": "CLIPImageProcessor", "size": 3360,
      "do_center_crop": false})");
  EXPECT_EQ(plan_image(1, 60000, *big).status().code(), StatusCode::kOutOfRange);
  const Image image = test::noise_image(4, 4, 0);
  ThreadPool pool(1);
  const auto plan = plan_image(5, 4, *recipe);
  EXPECT_EQ(apply_recipe(image.view(), *recipe, *plan, pool).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(Recipe, KeyTellsRecipesApart) {
  const auto a = parse(R"({"image_processor_type": "CLIPImageProcessor"})");
  const auto b = parse(R"({"image_processor_type": "CLIPImageProcessorFast"})");
  const auto c = parse(R"({"image_processor_type": "CLIPImageProcessor", "resample": 2})");
  EXPECT_EQ(image_recipe_key(*a), image_recipe_key(*b));
  EXPECT_NE(image_recipe_key(*a), image_recipe_key(*c));
}

TEST(Preprocess, EqualsDecodingFirst) {
  for (const char* config :
       {R"({"image_processor_type": "CLIPImageProcessor", "size": 30, "crop_size": 24})",
        R"({"image_processor_type": "SiglipImageProcessor"})",
        R"({"image_processor_type": "LlavaImageProcessor", "do_pad": true, "size": 28,
            "crop_size": 28})",
        R"({"image_processor_type": "SiglipImageProcessor", "do_resize": false})"}) {
    const auto recipe = parse(config);
    ASSERT_TRUE(recipe.is_ok()) << recipe.status().message();
    for (const char* name :
         {"jpeg_420.jpg", "jpeg_422.jpg", "jpeg_444.jpg", "jpeg_420_progressive.jpg",
          "jpeg_gray.jpg", "jpeg_cmyk.jpg", "jpeg_restart.jpg", "orientation_6.jpg",
          "orientation_1.jpg", "noise_baseline.jpg", "palette.gif", "alpha.webp"}) {
      const std::string file = test::load_sample(name);
      for (const int n_threads : {1, 2, 4}) {
        ThreadPool pool(n_threads);
        const auto image = decode_image(test::as_bytes(file));
        ASSERT_TRUE(image.is_ok()) << image.status().message();
        const auto plan = plan_image(image->width(), image->height(), *recipe);
        const auto apart = apply_recipe(image->view(), *recipe, *plan, pool);
        const auto fused = preprocess_image(test::as_bytes(file), *recipe, {}, pool);
        ASSERT_TRUE(fused.is_ok()) << fused.status().message();
        EXPECT_EQ(fused->values, apart->values) << name << " " << config;
      }
    }
  }
}

TEST(Preprocess, CutFilesAreErrors) {
  const auto recipe = parse(R"({"image_processor_type": "SiglipImageProcessor"})");
  const std::string file = test::load_sample("noise_baseline.jpg");
  for (const int n_threads : {1, 3}) {
    ThreadPool pool(n_threads);
    const auto out =
        preprocess_image(test::as_bytes(file.substr(0, file.size() / 2)), *recipe, {}, pool);
    ASSERT_FALSE(out.is_ok());
    EXPECT_EQ(out.status().code(), StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace triptych
