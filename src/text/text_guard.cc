#include "text/text_guard.h"

#include <algorithm>

namespace triptych {
namespace {

constexpr std::string_view kWhitespace = " \t\n\v\f\r";

/// Bytes of the UTF-8 sequence that `lead` starts; 1 for a stray byte.
size_t sequence_length(unsigned char lead) {
  if (lead >= 0xF0) return 4;
  if (lead >= 0xE0) return 3;
  if (lead >= 0xC0) return 2;
  return 1;
}

uint64_t edge(uint32_t node, char byte) {
  return (uint64_t{node} << 8) | static_cast<unsigned char>(byte);
}

void mark_range(std::vector<bool>& marked, size_t begin, size_t end) {
  std::fill(marked.begin() + static_cast<ptrdiff_t>(begin),
            marked.begin() + static_cast<ptrdiff_t>(end), true);
}

}  // namespace

ReservedStrings::ReservedStrings(const std::vector<std::string>& strings) : terminal_(1, false) {
  for (const std::string& text : strings) {
    if (text.empty()) continue;
    uint32_t node = 0;
    for (const char byte : text) {
      const auto [it, added] =
          children_.try_emplace(edge(node, byte), static_cast<uint32_t>(terminal_.size()));
      if (added) terminal_.push_back(false);
      node = it->second;
    }
    terminal_[node] = true;
    for (size_t begin = 1; begin < text.size(); ++begin) suffixes_.insert(text.substr(begin));
    joined_ += text;
    joined_ += '\0';
    longest_ = std::max(longest_, text.size());
  }
}

ReservedStrings::Walk ReservedStrings::walk(std::string_view text, size_t begin) const {
  uint32_t node = 0;
  Walk result{begin, false};
  for (size_t i = begin; i < text.size(); ++i) {
    const auto it = children_.find(edge(node, text[i]));
    if (it == children_.end()) return result;
    node = it->second;
    if (terminal_[node]) result.match_end = i + 1;
  }
  result.reached_end = true;
  return result;
}

std::vector<bool> ReservedStrings::whole_matches(std::string_view text) const {
  std::vector<bool> marked(text.size(), false);
  for (size_t i = 0; i < text.size(); ++i) mark_range(marked, i, walk(text, i).match_end);
  return marked;
}

/// Marks the ends of `text`, which lies at `offset` of the marked text.
void ReservedStrings::mark_edges(std::string_view text, size_t offset,
                                 std::vector<bool>& marked) const {
  if (text.empty()) return;
  const size_t first = text.size() > longest_ ? text.size() - longest_ : 0;
  for (size_t i = first; i < text.size(); ++i) {
    if (!walk(text, i).reached_end) continue;
    mark_range(marked, offset + i, offset + text.size());
    break;
  }
  for (size_t n = std::min(text.size(), longest_); n > 0; --n) {
    if (!suffixes_.contains(std::string(text.substr(0, n)))) continue;
    mark_range(marked, offset, offset + n);
    break;
  }
  if (text.size() < longest_ && joined_.find(text) != std::string::npos) {
    mark_range(marked, offset, offset + text.size());
  }
}

std::vector<bool> ReservedStrings::possible_matches(std::string_view text) const {
  std::vector<bool> marked = whole_matches(text);
  mark_edges(text, 0, marked);
  const size_t begin = text.find_first_not_of(kWhitespace);
  if (begin == std::string_view::npos) return marked;
  const size_t end = text.find_last_not_of(kWhitespace) + 1;
  mark_edges(text.substr(begin, end - begin), begin, marked);
  return marked;
}

Result<TextGuard> TextGuard::make(const ReservedStrings* reserved,
                                  const std::vector<std::string_view>& inputs) {
  // U+FDD0 to U+FDEF, which Unicode keeps free for such use: EF B7 90 to EF B7 AF.
  for (int last = 0x90; last <= 0xAF; ++last) {
    std::string mark = "\xEF\xB7";
    mark += static_cast<char>(last);
    const bool free = std::none_of(inputs.begin(), inputs.end(), [&](std::string_view text) {
      return text.find(mark) != std::string_view::npos;
    });
    if (free) return TextGuard(reserved, std::move(mark));
  }
  return invalid_argument("the messages contain every noncharacter from U+FDD0 to U+FDEF");
}

std::string TextGuard::put_marks(std::string_view text, const std::vector<bool>& marked) const {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t n =
        std::min(sequence_length(static_cast<unsigned char>(text[i])), text.size() - i);
    out += text.substr(i, n);
    const auto begin = marked.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(begin, begin + static_cast<ptrdiff_t>(n), true) !=
        begin + static_cast<ptrdiff_t>(n)) {
      out += mark_;
    }
    i += n;
  }
  return out;
}

std::string TextGuard::mark_text(std::string_view text) const {
  return put_marks(text, reserved_->possible_matches(text));
}

std::string TextGuard::mark_json_string(std::string_view text) const {
  return put_marks(text, reserved_->whole_matches(text));
}

Json TextGuard::mark_json(const Json& value) const {
  switch (value.kind()) {
    case Json::Kind::kString:
      return Json::string(mark_json_string(value.string_value()));
    case Json::Kind::kArray: {
      std::vector<Json> elements;
      for (const Json& element : value.elements()) elements.push_back(mark_json(element));
      return Json::array(std::move(elements));
    }
    case Json::Kind::kObject: {
      std::vector<Json::Member> members;
      for (const auto& [key, member] : value.members()) {
        members.emplace_back(mark_json_string(key), mark_json(member));
      }
      return Json::object(std::move(members));
    }
    default:
      return value;
  }
}

RenderedPrompt TextGuard::unmark(std::string_view rendered) const {
  RenderedPrompt prompt;
  prompt.text.reserve(rendered.size());
  size_t last = 0;  // where the last character of prompt.text begins
  for (size_t i = 0; i < rendered.size();) {
    if (rendered.compare(i, mark_.size(), mark_) == 0) {
      i += mark_.size();
      if (prompt.text.empty()) continue;
      if (!prompt.plain.empty() && prompt.plain.back().end >= last) {
        prompt.plain.back().end = prompt.text.size();
      } else {
        prompt.plain.push_back({last, prompt.text.size()});
      }
      continue;
    }
    const size_t n =
        std::min(sequence_length(static_cast<unsigned char>(rendered[i])), rendered.size() - i);
    last = prompt.text.size();
    prompt.text += rendered.substr(i, n);
    i += n;
  }
  return prompt;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const size_t n = sequence_length(lead);
    if (n == 1 || lead > 0xF4 || lead < 0xC2 || i + n > text.size()) return i;
    for (size_t k = 1; k < n; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return i;
    }
    const unsigned char second = byte(i + 1);
    const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
    const bool surrogate = lead == 0xED && second > 0x9F;
    const bool too_large = lead == 0xF4 && second > 0x8F;
    if (overlong || surrogate || too_large) return i;
    i += n;
  }
  return std::string_view::npos;
}

}  // namespace triptych
