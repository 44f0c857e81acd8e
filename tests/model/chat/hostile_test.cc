// Templates that try to overrun the stack, the memory or the clock.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/model/chat/chat_test_util.h"

namespace lanewise {
namespace {

std::string Repeat(absl::string_view s, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) absl::StrAppend(&out, s);
  return out;
}

absl::StatusCode Code(absl::string_view source,
                      const Json& variables = Json::object(),
                      ChatTemplate::RenderOptions options = {kTestClock}) {
  return RenderPrompt(source, variables, {}, options).status().code();
}

constexpr size_t kDeep = 100'000;

TEST(ChatHostile, DeepNestingIsASyntaxError) {
  for (const absl::string_view open :
       {"(", "[", "{1:", "-", "not ", "f(", "x[", "x|default(", "x is eq ",
        "x if x else ", "{% if x %}", "{% for x in y %}", "(x,"}) {
    const bool is_tag = open[0] == '{' && open[1] == '%';
    const std::string nested = Repeat(open, kDeep);
    const auto parsed =
        ChatTemplate::Parse(is_tag ? nested : absl::StrCat("{{ ", nested));
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << open;
  }
  const std::string closed =
      absl::StrCat("{{ ", Repeat("(", kDeep), "1", Repeat(")", kDeep), " }}");
  EXPECT_FALSE(ChatTemplate::Parse(closed).ok());
}

TEST(ChatHostile, LongChainsAreASyntaxErrorOrWork) {
  for (const absl::string_view link :
       {"+ 1 ", "* 1 ", "** 1 ", "and 1 ", "or 0 ", "| string ", ".a ", "[0]",
        "()", "is defined | string ", "if 1 "}) {
    const std::string source =
        absl::StrCat("{{ x ", Repeat(link, kDeep), " }}");
    EXPECT_EQ(ChatTemplate::Parse(source).status().code(),
              absl::StatusCode::kInvalidArgument)
        << link;
  }
  EXPECT_EQ(Render(absl::StrCat("{{ '' ", Repeat("~ 'a'", 2000), " }}")),
            std::string(2000, 'a'));
  EXPECT_EQ(Render(absl::StrCat("{% if 0 %}", Repeat("{% elif 0 %}", kDeep),
                                "{% else %}e{% endif %}")),
            "e");
}

TEST(ChatHostile, ReasonableNestingWorks) {
  EXPECT_EQ(
      Render(absl::StrCat("{{ ", Repeat("(", 60), "1", Repeat(")", 60), " }}")),
      "1");
  EXPECT_EQ(Render(absl::StrCat("{{ 0", Repeat("+ 1", 300), " }}")), "300");
  EXPECT_EQ(Render(absl::StrCat(Repeat("{% if 1 %}", 60), "x",
                                Repeat("{% endif %}", 60))),
            "x");
}

TEST(ChatHostile, EndlessRecursionEnds) {
  EXPECT_EQ(Code("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% macro f(n) %}{{ f(n) + f(n) }}{% endmacro %}{{ f(1) }}"),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}"),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}"
                 "{% endmacro %}{{ f() }}"),
            absl::StatusCode::kResourceExhausted);
}

TEST(ChatHostile, StepsAreBounded) {
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
      "{% endfor %}";
  EXPECT_EQ(Code(loops), absl::StatusCode::kResourceExhausted);
  ChatTemplate::RenderOptions few{kTestClock};
  few.max_steps = 100;
  EXPECT_EQ(
      Code("{% for a in range(99) %}{{ a }}{% endfor %}", Json::object(), few),
      absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      Code("{% for a in range(9) %}{{ a }}{% endfor %}", Json::object(), few),
      absl::StatusCode::kOk);
}

TEST(ChatHostile, MemoryIsBounded) {
  for (const absl::string_view expression :
       {"'a' * 10**9", "[1] * 10**9", "('a' * 10**8) * 10**8",
        "'%999999999d' % 1", "'{:999999999}'.format(1)", "'a'.center(10**12)",
        "'a'.ljust(9223372036854775807)", "'a' | indent(10**12)",
        "[1] | batch(10**12, 'x') | list", "'a' | center(10**12)",
        "'x'.zfill(10**12)", "('ab' * 1000000).replace('a', 'b' * 1000000)",
        "('b' * 1000000).join('a' * 1000000)", "'a' | slice(10**12) | list"}) {
    EXPECT_EQ(Code(absl::StrCat("{{ (", expression, ") | length }}")),
              absl::StatusCode::kResourceExhausted)
        << expression;
  }
  EXPECT_EQ(Code("{% set ns = namespace(s='a') %}{% for i in range(99) %}"
                 "{% set ns.s = ns.s + ns.s %}{% endfor %}"),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% set ns = namespace(s=[1]) %}{% for i in range(99) %}"
                 "{% set ns.s = ns.s + ns.s %}{% endfor %}"),
            absl::StatusCode::kResourceExhausted);
}

TEST(ChatHostile, OutputIsBounded) {
  ChatTemplate::RenderOptions small{kTestClock};
  small.max_output_bytes = 1000;
  EXPECT_EQ(Code("{{ 'a' * 1000 }}", Json::object(), small),
            absl::StatusCode::kOk);
  EXPECT_EQ(Code("{{ 'a' * 1001 }}", Json::object(), small),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% for i in range(200) %}0123456789{% endfor %}",
                 Json::object(), small),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% set x %}{% for i in range(200) %}0123456789{% endfor %}"
                 "{% endset %}",
                 Json::object(), small),
            absl::StatusCode::kResourceExhausted);
}

// Lists that share their parts have exponentially many elements.
TEST(ChatHostile, SharedStructuresAreWalkedWithinBounds) {
  const std::string build =
      "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}"
      "{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}"
      "{% endfor %}";
  for (const char* use : {"{{ ns.l == ns.m }}", "{{ ns.l }}",
                          "{{ ns.l | tojson }}", "{{ ns.l < ns.m }}"}) {
    EXPECT_EQ(Code(build + use), absl::StatusCode::kResourceExhausted) << use;
  }
  EXPECT_EQ(Code("{% set ns = namespace(l=[]) %}{% for i in range(999) %}"
                 "{% set ns.l = [ns.l] %}{% endfor %}"),
            absl::StatusCode::kResourceExhausted);
}

TEST(ChatHostile, CyclesEnd) {
  EXPECT_EQ(Code("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}"),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Render("{% set ns = namespace() %}{% set ns.a = [ns] %}"
                   "{% macro m() %}{% endmacro %}{% set ns.m = m %}"
                   "{% for i in [1] %}{% set ns.l = loop %}"
                   "{{ loop.changed(loop, ns) }}{% endfor %}"
                   "{{ ns.a == ns.a }}"),
            "TrueTrue");
}

TEST(ChatHostile, SearchIsLinear) {
  // Quadratic search would take hours here.
  EXPECT_EQ(Render("{% set a = 'a' * 2000000 %}{% set b = 'a' * 1000000 + 'b' "
                   "%}{{ b in a }}{{ a.find(b) }}{{ a.rfind('b' + b) }}"
                   "{{ a.split(b) | length }}{{ a.replace(b, '') | length }}"),
            "False-1-112000000");
}

TEST(ChatHostile, BadBytes) {
  EXPECT_FALSE(ChatTemplate::Parse("a\xFF").ok());
  EXPECT_FALSE(ChatTemplate::Parse("{{ '\xC3' }}").ok());
  EXPECT_EQ(Code("{{ s }}", {{"s", "\xED\xA0\x80"}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ChatTemplate::Parse("{{ '\\ud800' }}").ok());
  EXPECT_EQ(Code("{{ x }}", Json::array()), absl::StatusCode::kInvalidArgument);
  Json deep = Json::array();
  for (int i = 0; i < 5000; ++i) deep = Json::array({std::move(deep)});
  EXPECT_EQ(Code("{{ x }}", {{"x", std::move(deep)}}),
            absl::StatusCode::kInvalidArgument);
}

// No prefix and no mutation of a real template does worse than fail.
TEST(ChatHostile, DamagedTemplates) {
  const std::string source = ReadFile(
      absl::StrCat(kTemplateFolder, "/meta-llama-Llama-3.2-3B-Instruct.jinja"));
  const Json input = ReadJsonLines(absl::StrCat(
      kTemplateFolder, "/meta-llama-Llama-3.2-3B-Instruct.jsonl"))[0]["input"];
  size_t rendered = 0;
  for (size_t n = 0; n < source.size(); n += 7) {
    rendered += RenderPrompt(source.substr(0, n), input).ok() ? 1 : 0;
    std::string damaged = source;
    damaged.erase(n, 1 + n % 5);
    rendered += RenderPrompt(damaged, input).ok() ? 1 : 0;
    damaged = source;
    damaged[n] = "{}%()[]|'\"~-"[n % 12];
    rendered += RenderPrompt(damaged, input).ok() ? 1 : 0;
  }
  EXPECT_GT(rendered, 0u);
}

}  // namespace
}  // namespace lanewise
