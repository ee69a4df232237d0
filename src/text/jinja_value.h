// Values of the template engine and the heap that owns them.
//
// A Value is a small tagged word; everything that is not a number lives in the Heap of one
// rendering and is freed with it, so cycles and deep chains cost nothing to free. The Heap also
// keeps the rendering's budget: objects, bytes and steps are counted and a rendering that passes a
// limit fails.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja_text.h"

namespace mx8::jinja {

// Ends a rendering or a parse; caught by the engine's entry points, never seen outside src/text.
struct Failure {
  std::string message;
  int line = 0;  // 0: where the interpreter is
};
[[noreturn]] void fail(std::string message);

struct RenderLimits {
  int64_t steps = 10'000'000;        // evaluated nodes, plus one for each 64 bytes of text handled
  size_t heap_bytes = 512ull << 20;  // everything allocated by one rendering
  size_t text_bytes = 64ull << 20;   // one string, and the output
  int depth = 1000;                  // nested evaluations (a macro call takes about six)
};

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kNamespace,
  kRange,
  kView,
  kGenerator,
  kFunction,
  kMacro,
  kLoop
};

struct Object {
  virtual ~Object() = default;
};
struct StringObject;
struct ListObject;
struct DictObject;

class Value {
 public:
  Value() : kind_(Kind::kNone), int_(0) {}
  static Value none() { return {}; }
  static Value boolean(bool b) {
    Value v;
    v.kind_ = Kind::kBool;
    v.int_ = b;
    return v;
  }
  static Value integer(int64_t i) {
    Value v;
    v.kind_ = Kind::kInt;
    v.int_ = i;
    return v;
  }
  static Value real(double d) {
    Value v;
    v.kind_ = Kind::kFloat;
    v.double_ = d;
    return v;
  }
  static Value object(Kind kind, Object* o) {
    Value v;
    v.kind_ = kind;
    v.object_ = o;
    return v;
  }

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  int64_t as_int() const { return int_; }  // kInt and kBool
  double as_double() const { return kind_ == Kind::kFloat ? double_ : static_cast<double>(int_); }
  Object* as_object() const { return object_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(object_);
  }

  const Text& text() const;           // kString
  std::vector<Value>& items() const;  // kList, kTuple, kView, kGenerator
  DictObject& dict() const;           // kDict, kNamespace

 private:
  Kind kind_;
  union {
    int64_t int_;
    double double_;
    Object* object_;
  };
};

struct UndefinedObject : Object {
  std::string reason;  // what an operation on it reports
};
struct StringObject : Object {
  Text text;
  bool markup = false;  // came through `safe` or `escape`: text added to it is escaped
};
struct ListObject : Object {
  std::vector<Value> items;
  size_t consumed = 0;    // kGenerator: items already taken
  const char* name = "";  // kView, kGenerator: its Python type
};
struct RangeObject : Object {
  int64_t start = 0, stop = 0, step = 1, length = 0;
};
// A dict in insertion order. Keys are strings, numbers, None or tuples of these.
struct DictObject : Object {
  std::vector<std::pair<Value, Value>> entries;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(const Value& key, const Value& value);

 private:
  std::unordered_map<std::string_view, size_t> index_;  // string keys, once there are many
  bool other_keys_ = false;
};

class Heap {
 public:
  explicit Heap(const RenderLimits& limits) : limits_(limits) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  template <class T>
  T* make(size_t extra_bytes = 0) {
    charge(sizeof(T) + 32 + extra_bytes);
    auto owned = std::make_unique<T>();
    T* raw = owned.get();
    objects_.push_back(std::move(owned));
    return raw;
  }
  Value string(Text text, bool markup = false);
  Value string(std::string_view trusted) { return string(Text(trusted)); }
  Value list(std::vector<Value> items) { return sequence(Kind::kList, std::move(items), ""); }
  Value tuple(std::vector<Value> items) { return sequence(Kind::kTuple, std::move(items), ""); }
  Value view(const char* name, std::vector<Value> items) {
    return sequence(Kind::kView, std::move(items), name);
  }
  Value generator(const char* name, std::vector<Value> items) {
    return sequence(Kind::kGenerator, std::move(items), name);
  }
  Value undefined(std::string reason);
  Value range(int64_t start, int64_t stop, int64_t step);  // step != 0, |values| < 2^62

  void charge(size_t bytes);     // memory
  void step(int64_t steps = 1);  // time
  void work(size_t bytes) { step(1 + static_cast<int64_t>(bytes / 64)); }
  void check_text(size_t bytes) const;  // one string
  const RenderLimits& limits() const { return limits_; }

  // Counts nesting for as long as it lives.
  class Nest {
   public:
    explicit Nest(Heap& heap) : heap_(heap) {
      if (++heap_.depth_ > heap_.limits_.depth) heap_.too_deep();
    }
    ~Nest() { --heap_.depth_; }
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;

   private:
    Heap& heap_;
  };

 private:
  Value sequence(Kind kind, std::vector<Value> items, const char* name);
  [[noreturn]] void too_deep();

  RenderLimits limits_;
  std::vector<std::unique_ptr<Object>> objects_;
  size_t bytes_ = 0;
  int64_t steps_ = 0;
  int depth_ = 0;
};

std::string type_name(const Value& v);  // "str", "dict", ...
bool truthy(const Value& v);
bool equal(Heap& heap, const Value& a, const Value& b);
bool less(Heap& heap, const Value& a, const Value& b);  // fails where Python raises TypeError
bool contains(Heap& heap, const Value& container, const Value& item);
// Fails where a Python dict would refuse the key.
void require_hashable(const Value& key);

std::string float_repr(double d);
Text to_text(Heap& heap, const Value& v);  // str(v)
Text repr(Heap& heap, const Value& v);
Value to_string(Heap& heap, const Value& v);  // v itself when it is a string

// json.dumps with the options of the `tojson` filter.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;
  Text indent;
  Text item_separator{", "}, key_separator{": "};
};
Text to_json(Heap& heap, const Value& v, const JsonStyle& style);

// The length that len() reports, or -1 where it fails.
int64_t length_of(Heap& heap, const Value& v);
// All items of an iterable (a generator is used up). Fails where Python raises TypeError.
std::vector<Value> iterate(Heap& heap, const Value& v);
bool is_iterable(const Value& v);

}  // namespace mx8::jinja
