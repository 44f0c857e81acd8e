// Semantics and errors of the language, by hand.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/model/chat/chat_test_util.h"

namespace lanewise {
namespace {

TEST(ChatLanguage, M19RaisedMessageIsPassedOnUnchanged) {
  const auto prompt = RenderPrompt(
      "{% if messages[0].role == messages[1].role %}\n"
      "{{ raise_exception('Roles must alternate: ' ~ messages[1].role) }}"
      "{% endif %}",
      {{"messages", {{{"role", "user"}}, {{"role", "user"}}}}});
  EXPECT_EQ(prompt.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(prompt.status().message(), "Roles must alternate: user");
}

TEST(ChatLanguage, M20MissingFeaturesAreNamedWithTheirLine) {
  for (const auto& [source, name] :
       {std::pair<std::string, std::string>{"\n{{ x | frobnicate }}",
                                            "filter 'frobnicate'"},
        {"\n{{ x is frobbed }}", "test 'frobbed'"},
        {"\n{% include 'a' %}", "tag 'include'"},
        {"\n{% extends 'a' %}", "tag 'extends'"},
        {"a\n{% block b %}{% endblock %}", "tag 'block'"}}) {
    const absl::Status status = ChatTemplate::Parse(source).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), name)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "line 2")) << status;
  }
  for (const auto& [source, name] :
       {std::pair<std::string, std::string>{
            "\n{% if 1 %}{{ x | frobnicate }}{% endif %}", "'frobnicate'"},
        {"\n{{ [1] | map('frobnicate') | list }}", "'frobnicate'"},
        {"\n{{ [1] | select('frobbed') | list }}", "'frobbed'"},
        {"\n{{ 'a'.encode() }}", "method"},
        {"\n{{ lipsum() }}", "lipsum"}}) {
    const absl::Status status = RenderPrompt(source, Json::object()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << source;
    EXPECT_TRUE(absl::StrContains(status.message(), name)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "line 2")) << status;
  }
}

TEST(ChatLanguage, M20WhatIsNotReachedMayBeMissing) {
  EXPECT_EQ(Render("{% if 0 %}{{ x | frobnicate }}{% endif %}ok"), "ok");
  EXPECT_EQ(Render("{{ 'ok' if 1 else x | frobnicate }}"), "ok");
  EXPECT_EQ(Render("{{ (x | frobnicate) if 0 else 'ok' }}"), "ok");
}

TEST(ChatLanguage, M20FiltersAndTestsOfTheReports) {
  const Json v = {{"l", {1, nullptr, 3}},
                  {"m", {{{"a", 1}}, {{"a", 2}}, Json::object()}}};
  EXPECT_EQ(Render("{{ l | reject('none') | list }}", v), "[1, 3]");
  EXPECT_EQ(
      Render("{{ m | rejectattr('a', 'equalto', 1) | list | length }}", v),
      "2");
  EXPECT_EQ(Render("{{ m | rejectattr('a', 'defined') | list }}", v), "[{}]");
}

TEST(ChatLanguage, SyntaxErrorsHaveLineAndColumn) {
  const absl::Status status = ChatTemplate::Parse("ab\ncd {{ 1 + }}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "line 2, column 11"))
      << status;
}

TEST(ChatLanguage, RuntimeErrorsHaveTheirLine) {
  EXPECT_EQ(Render("a\nb\n{{ x.y }}"),
            "INVALID_ARGUMENT: chat template: line 3: 'x' is undefined");
  EXPECT_EQ(Render("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n\n{{ m() }}"),
            "INVALID_ARGUMENT: chat template: line 2: division by zero");
  EXPECT_EQ(Render("{{ {}.a.b }}"),
            "INVALID_ARGUMENT: chat template: line 1: 'dict object' has no "
            "attribute 'a'");
  EXPECT_EQ(Render("{{ [].append(1) }}"),
            "INVALID_ARGUMENT: chat template: line 1: access to attribute "
            "'append' of 'list' object is unsafe.");
}

TEST(ChatLanguage, WhitespaceControl) {
  EXPECT_EQ(Render("a\n  {% if 1 %}\n  b\n  {% endif %}\nc"), "a\n  b\nc");
  EXPECT_EQ(Render("a\n  {%- if 1 -%}\n  b\n  {%- endif -%}\nc"), "abc");
  EXPECT_EQ(Render("a\n  {%+ if 1 +%}\nb{% endif %}"), "a\n  \nb");
  EXPECT_EQ(Render("  {{ 1 }}\n{{- 2 -}}\n 3"), "  123");
  EXPECT_EQ(Render("a\n  {# note #}\nb\n"), "a\nb");
  EXPECT_EQ(Render("a\n\n"), "a\n");
  EXPECT_EQ(Render("a\r\nb\rc"), "a\nb\nc");
}

TEST(ChatLanguage, LoopScope) {
  EXPECT_EQ(Render("{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}"
                   "{{ x }}{% endfor %}{{ x }}"),
            "15151");
  EXPECT_EQ(Render("{% set ns = namespace(x=1) %}{% for i in [1, 2] %}"
                   "{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}"),
            "4");
  EXPECT_EQ(Render("{% if 1 %}{% set x = 2 %}{% endif %}{{ x }}"), "2");
  EXPECT_EQ(Render("{% for i in [1] %}{% endfor %}{{ i is defined }}"),
            "False");
}

// As the reference counts: rounds that end early are none.
TEST(ChatLanguage, M20ElseOfALoopNeedsARoundThatRanToItsEnd) {
  const auto loop = [](const std::string& body) {
    return Render("{% for i in [1, 2] %}" + body + "{% else %}E{% endfor %}");
  };
  EXPECT_EQ(loop("{{ i }}"), "12");
  EXPECT_EQ(loop("{{ i }}{% break %}"), "1E");
  EXPECT_EQ(loop("{{ i }}{% continue %}"), "12E");
  EXPECT_EQ(loop("{{ i }}{% if i == 1 %}{% continue %}{% endif %}"), "12");
  EXPECT_EQ(loop("{{ i }}{% if i == 2 %}{% break %}{% endif %}"), "12");
  EXPECT_EQ(loop("{% for j in [3, 4] %}{{ j }}{% break %}{% endfor %}"), "33");
}

TEST(ChatLanguage, M20WhatCannotBeSlicedIsAnError) {
  for (const char* value : {"1", "none", "true", "1.5", "{'a': 1}"}) {
    const std::string text = Render(std::string("{{ (") + value + ")[:1] }}");
    EXPECT_TRUE(absl::StrContains(text, "cannot be sliced")) << text;
  }
  EXPECT_EQ(Render("{{ 'ab'[:1] }}{{ [1, 2][1:] }}{{ (1, 2)[::-1] }}"),
            "a[2](2, 1)");
}

TEST(ChatLanguage, M20FormatsDoNotUseUpWhatHasElements) {
  EXPECT_EQ(Render("{{ 'a' % [1] }}{{ 'b' % {} }}{{ 'c' % x }}"), "abc");
  EXPECT_EQ(Render("{{ '%s' % [1] }}{{ 'd' % () }}"), "[1]d");
  for (const char* value : {"1", "'x'", "none", "(1,)"}) {
    const std::string text = Render(std::string("{{ 'a' % ") + value + " }}");
    EXPECT_TRUE(absl::StrContains(text, "not all arguments")) << text;
  }
}

TEST(ChatLanguage, M20TruncateLeavesWhatIsShort) {
  EXPECT_EQ(Render("{{ x | truncate(5) }}{{ [1, 2] | truncate(5) }}"),
            "[1, 2]");
  EXPECT_EQ(Render("{{ 'abcdef ghijkl' | truncate(7) }}"), "abcd...");
}

TEST(ChatLanguage, TheLoopsConditionIsTestedWhenNeeded) {
  const std::string head =
      "{% set ns = namespace(n=0) %}{% for i in [1, 2, 3] if ns.n < 1 %}";
  EXPECT_EQ(Render(head + "{{ i }}{% set ns.n = 1 %}{% endfor %}"), "1");
  EXPECT_EQ(Render(head + "{{ loop.length }}{% set ns.n = 1 %}{% endfor %}"),
            "333");
}

TEST(ChatLanguage, Clock) {
  EXPECT_EQ(Render("{{ strftime_now('%d %b %Y, %H:%M:%S') }}"),
            "14 Mar 2026, 15:09:26");
  EXPECT_EQ(Render("{{ strftime_now('%Q') }}"),
            "UNIMPLEMENTED: chat template: line 1: strftime directive %Q");
}

TEST(ChatLanguage, IntegersHave64Bits) {
  EXPECT_EQ(Render("{{ 9223372036854775807 }}"), "9223372036854775807");
  for (const char* expression :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2",
        "9223372036854775807 * 2", "2 ** 63",
        "(-9223372036854775807 - 1) // -1", "-(-9223372036854775807 - 1)"}) {
    EXPECT_TRUE(absl::StrContains(
        Render(absl::StrCat("{{ ", expression, " }}")), "beyond 64 bits"))
        << expression;
  }
  EXPECT_EQ(Render("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
  EXPECT_FALSE(ChatTemplate::Parse("{{ 9223372036854775808 }}").ok());
  // A large unsigned number of a tool's schema is passed through.
  EXPECT_EQ(Render("{{ {'m': x} | tojson }}{{ x }}",
                   {{"x", uint64_t{18446744073709551615u}}}),
            "{\"m\": 18446744073709551615}18446744073709551615");
}

TEST(ChatLanguage, VariablesOfTheInputKeepTheirOrder) {
  EXPECT_EQ(Render("{{ d | tojson }}", {{"d", {{"z", 1}, {"a", 2.0}}}}),
            "{\"z\": 1, \"a\": 2.0}");
}

TEST(ChatLanguage, OneTemplateManyRenderings) {
  auto chat = ChatTemplate::Parse("{% set n = x + 1 %}{{ n }}");
  ASSERT_TRUE(chat.ok());
  ChatTemplate moved = *std::move(chat);
  for (int i = 0; i < 3; ++i) {
    const auto prompt = moved.Render({{"x", i}}, {}, {});
    ASSERT_TRUE(prompt.ok());
    EXPECT_EQ(prompt->text, absl::StrCat(i + 1));
  }
}

}  // namespace
}  // namespace lanewise
