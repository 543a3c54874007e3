#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weights/gguf.h"

namespace triptych {
namespace {

struct TypeRow {
  uint32_t id;
  std::string_view name;
  GgmlBlock block;
};

// ggml's type table (ggml.h, gguf-py constants): all of them, so that an unsupported file is
// checked like any other and its type is named.
constexpr std::array kTypes = {
    TypeRow{0, "F32", {1, 4}},         TypeRow{1, "F16", {1, 2}},
    TypeRow{2, "Q4_0", {32, 18}},      TypeRow{3, "Q4_1", {32, 20}},
    TypeRow{6, "Q5_0", {32, 22}},      TypeRow{7, "Q5_1", {32, 24}},
    TypeRow{8, "Q8_0", {32, 34}},      TypeRow{9, "Q8_1", {32, 40}},
    TypeRow{10, "Q2_K", {256, 84}},    TypeRow{11, "Q3_K", {256, 110}},
    TypeRow{12, "Q4_K", {256, 144}},   TypeRow{13, "Q5_K", {256, 176}},
    TypeRow{14, "Q6_K", {256, 210}},   TypeRow{15, "Q8_K", {256, 292}},
    TypeRow{16, "IQ2_XXS", {256, 66}}, TypeRow{17, "IQ2_XS", {256, 74}},
    TypeRow{18, "IQ3_XXS", {256, 98}}, TypeRow{19, "IQ1_S", {256, 50}},
    TypeRow{20, "IQ4_NL", {32, 18}},   TypeRow{21, "IQ3_S", {256, 110}},
    TypeRow{22, "IQ2_S", {256, 82}},   TypeRow{23, "IQ4_XS", {256, 136}},
    TypeRow{24, "I8", {1, 1}},         TypeRow{25, "I16", {1, 2}},
    TypeRow{26, "I32", {1, 4}},        TypeRow{27, "I64", {1, 8}},
    TypeRow{28, "F64", {1, 8}},        TypeRow{29, "IQ1_M", {256, 56}},
    TypeRow{30, "BF16", {1, 2}},       TypeRow{34, "TQ1_0", {256, 54}},
    TypeRow{35, "TQ2_0", {256, 66}},   TypeRow{39, "MXFP4", {32, 17}},
    TypeRow{40, "NVFP4", {64, 36}},
};

const TypeRow* find_row(GgmlType type) {
  const auto* row = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& r) {
    return r.id == static_cast<uint32_t>(type);
  });
  return row == kTypes.end() ? nullptr : row;
}

}  // namespace

std::string ggml_type_name(GgmlType type) {
  const TypeRow* row = find_row(type);
  return row != nullptr ? std::string(row->name)
                        : fmt::format("type {}", static_cast<uint32_t>(type));
}

bool ggml_type_is_read(GgmlType type) {
  switch (type) {
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kBF16:
    case GgmlType::kQ4_0:
    case GgmlType::kQ4_1:
    case GgmlType::kQ8_0:
      return true;
  }
  return false;
}

std::optional<GgmlBlock> ggml_block(GgmlType type) {
  const TypeRow* row = find_row(type);
  if (row == nullptr) return std::nullopt;
  return row->block;
}

}  // namespace triptych
