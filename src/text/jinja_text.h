// Strings of the template engine: UTF-8 bytes that remember which of them came from a user, and
// the string operations of Python on them.
//
// Every operation keeps the marks: what is cut out of, joined with or derived from marked text is
// marked. Positions and lengths that templates see count code points; those in this file that are
// called offsets count bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mx8::jinja {

class Text {
 public:
  Text() = default;
  explicit Text(std::string_view bytes, bool marked = false) { append(bytes, marked); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool any_marked() const { return !marks_.empty(); }

  void append(std::string_view bytes, bool marked);
  void append(const Text& other);
  // Bytes [offset, offset + length) of `other`.
  void append_part(const Text& other, size_t offset, size_t length);
  Text part(size_t offset, size_t length = std::string::npos) const;

  // Calls f(bytes, marked) for each maximal run, in order.
  void for_each_run(const std::function<void(std::string_view, bool)>& f) const;

  // Whether the byte at `offset` is marked; cheap when offsets ascend.
  class Cursor {
   public:
    explicit Cursor(const Text& text) : text_(text) {}
    bool marked(size_t offset);

   private:
    const Text& text_;
    size_t next_ = 0;
  };

 private:
  struct Mark {
    size_t begin, end;
  };
  std::string bytes_;
  std::vector<Mark> marks_;  // ascending, not touching
};

// ---- UTF-8. All text inside the engine is valid UTF-8 (checked where it enters).
bool valid_utf8(std::string_view s);
size_t code_points(std::string_view s);
// Offset of the code point number `index`, or s.size() when there are fewer.
size_t offset_of(std::string_view s, size_t index);
// Decodes the code point at `offset` and moves it behind.
char32_t next_code_point(std::string_view s, size_t& offset);
void append_utf8(std::string& out, char32_t c);
bool is_space(char32_t c);            // str.isspace of one character
bool is_identifier_char(char32_t c);  // letters, marks, digits, '_'
int decimal_value(char32_t c);        // 0 to 9 for a decimal digit of any script, else -1
bool is_printable(char32_t c);        // what repr() shows as itself

// ---- Python's str methods.
enum class Side { kBoth, kLeft, kRight };
// `chars` null: white space.
Text strip(const Text& s, Side side, const std::string* chars);
size_t rstrip_offset(std::string_view s);  // length of s without its trailing white space
// max_splits < 0: no limit.
std::vector<Text> split(const Text& s, const std::string* separator, int64_t max_splits,
                        bool from_right);
std::vector<Text> split_lines(const Text& s, bool keep_ends);
int64_t count_occurrences(std::string_view s, std::string_view what);
Text replace(const Text& s, const Text& from, const Text& to, int64_t max_count);
Text upper(const Text& s);
Text lower(const Text& s);
Text capitalize(const Text& s);
// `jinja_rules`: words begin after any of "-({[<" and white space (the filter), else after any
// character without case (str.title).
Text title(const Text& s, bool jinja_rules);
Text reverse(const Text& s);
Text html_escape(const Text& s);
Text repr(const Text& s);
enum class CharTest { kAlpha, kDigit, kDecimal, kNumeric, kAlnum, kSpace, kUpper, kLower };
bool all_of(std::string_view s, CharTest test);

}  // namespace mx8::jinja
