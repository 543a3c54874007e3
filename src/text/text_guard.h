#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "text/chat_template.h"

namespace triptych {

/// Strings that only a chat template may write: special tokens and media tokens. Finds where text
/// of a user spells one, whole or in part.
class ReservedStrings {
 public:
  explicit ReservedStrings(const std::vector<std::string>& strings);

  /// Which bytes of `text` belong to a reserved string that lies wholly within it.
  std::vector<bool> whole_matches(std::string_view text) const;
  /// As `whole_matches`, and the ends of `text` that could become a reserved string together with
  /// what a template puts beside them (with and without the whitespace that templates trim).
  std::vector<bool> possible_matches(std::string_view text) const;

 private:
  /// Walks the trie from text[begin]; returns the end of the longest whole match (begin when none)
  /// and whether the walk reached the end of the text.
  struct Walk {
    size_t match_end;
    bool reached_end;
  };
  Walk walk(std::string_view text, size_t begin) const;
  void mark_edges(std::string_view text, size_t offset, std::vector<bool>& marked) const;

  std::unordered_map<uint64_t, uint32_t> children_;  ///< (node << 8 | byte) to node
  std::vector<bool> terminal_;                       ///< by node
  std::unordered_set<std::string> suffixes_;         ///< proper suffixes of all strings
  std::string joined_;                               ///< all strings, separated by zero bytes
  size_t longest_ = 0;
};

/// Carries the knowledge of which characters came from a user through a template's rendering. A
/// character that must stay text is followed by a mark, a Unicode noncharacter that occurs in none
/// of the inputs; after rendering the marks are taken out and become byte ranges. A template's own
/// work on the text (trim, split, startswith) sees the same text wherever no reserved string is
/// spelt.
class TextGuard {
 public:
  /// `inputs`: every text that goes into the rendering. kInvalidArgument when they use up all
  /// marks.
  static Result<TextGuard> make(const ReservedStrings* reserved,
                                const std::vector<std::string_view>& inputs);

  /// A message's text.
  std::string mark_text(std::string_view text) const;
  /// A string within JSON (tool definitions, arguments), which templates may compare.
  std::string mark_json_string(std::string_view text) const;
  /// All strings of a JSON value, keys included.
  Json mark_json(const Json& value) const;
  /// Takes the marks out of rendered text.
  RenderedPrompt unmark(std::string_view rendered) const;

 private:
  TextGuard(const ReservedStrings* reserved, std::string mark)
      : reserved_(reserved), mark_(std::move(mark)) {}
  std::string put_marks(std::string_view text, const std::vector<bool>& marked) const;

  const ReservedStrings* reserved_;
  std::string mark_;
};

/// Byte of the first sequence that is not UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);

}  // namespace triptych
