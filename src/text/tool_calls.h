#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "request/sampling_params.h"
#include "text/chat_template.h"

namespace triptych {

/// How a model writes the calls of tools, learnt from how its template writes them.
struct ToolCallFormat {
  /// What stands around each call, as in "<tool_call>\n" and "\n</tool_call>". Both empty: the
  /// answer is nothing but the calls.
  std::string open;
  std::string close;
  std::string arguments_key = "arguments";  ///< "parameters" in some families
  bool in_array = false;                    ///< calls are the elements of one JSON array
};

/// Renders a conversation with a tool and a call of it and looks where they come out. kUnsupported
/// when the template leaves out tools or their calls, or writes a call as anything but a JSON
/// object of name and arguments.
Result<ToolCallFormat> find_tool_call_format(const ChatTemplate& chat);

/// A call as a model made it.
struct ToolCall {
  std::string name;
  std::string arguments;  ///< the text of a JSON object
};

/// Parts an answer into text and calls as it comes. What looks like a call and is none stays text.
class ToolCallParser {
 public:
  struct Output {
    std::string text;
    std::vector<ToolCall> calls;
  };

  explicit ToolCallParser(ToolCallFormat format);
  /// What the piece makes certain. A call is given out when it is whole.
  Output push(std::string_view piece);
  /// What was still held back. Call once, behind the last piece.
  Output end();

 private:
  void take_tagged(Output& out);
  void take_bare(Output& out);

  enum class State : unsigned char { kText, kMaybeCalls, kInCall, kAfterCall };
  ToolCallFormat format_;
  std::string open_tag_;   ///< without white space
  std::string close_tag_;  ///< the same
  State state_;
  std::string held_;
};

/// What an answer that must call a tool may be.
struct ForcedCall {
  std::vector<std::string> names;  ///< of the tools that may be called
  bool several = true;             ///< or exactly one call
};

/// The grammar of an answer that is nothing but calls of these tools with arguments of their
/// schemas. `tools` is the array of definitions as the OpenAI API has it, already checked.
GrammarSpec forced_call_grammar(const ToolCallFormat& format, const Json& tools,
                                const ForcedCall& call);

}  // namespace triptych
