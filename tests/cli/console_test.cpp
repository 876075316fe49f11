// Tests tables and strings of the command line.
#include "cli/console.hpp"

#include <gtest/gtest.h>

#include "present/text/printable.hpp"

namespace graft::cli {
namespace {

TEST(Table, columns_start_at_the_same_place) {
  Table table;
  table.add({"a", "long name", "x"});
  table.add({"bcd", "y", "z"});
  EXPECT_EQ(table.text(false, 80), "  a    long name  x\n  bcd  y          z\n");
}

TEST(Table, last_column_wraps_below_itself) {
  Table table;
  table.add({"key", "one two three four five six seven eight nine ten"});
  EXPECT_EQ(table.text(false, 40), "  key  one two three four five six seven\n       eight nine ten\n");
}

TEST(Table, width_counts_characters_and_not_bytes) {
  Table table;
  table.add({"é", "1"});
  table.add({"ab", "2"});
  EXPECT_EQ(table.text(false, 80), "  é   1\n  ab  2\n");
}

TEST(Table, color_does_not_change_the_alignment) {
  Table table;
  table.add({{"ok", Color::good}, "1"});
  table.add({"missing", "2"});
  EXPECT_EQ(table.text(true, 80), "  \033[32mok\033[0m       1\n  missing  2\n");
}

TEST(Table, a_name_makes_no_rows_and_no_colors) {
  Table table;
  table.add({"a\nb", "\033[31mred\tx"});
  EXPECT_EQ(table.text(false, 80), "  a\\nb  \\u001b[31mred\\tx\n");
}

TEST(Printable, what_a_terminal_acts_on_is_written_as_json_writes_it) {
  EXPECT_EQ(present::printable("scope/conv ä 漢 😀\t\n"), "scope/conv ä 漢 😀\t\n");
  EXPECT_EQ(present::printable("\033]0;title\a\r\x7f"), "\\u001b]0;title\\u0007\\u000d\\u007f");
  EXPECT_EQ(present::printable(std::string_view("\0", 1)), "\\u0000");
  EXPECT_EQ(present::printable("a\xC2\x9B"
                               "31m"),
            "a\\u009b31m");
  EXPECT_EQ(present::printable("\u202Egpj.\u2066x\u2069\u200F\u061C\u2028"),
            "\\u202egpj.\\u2066x\\u2069\\u200f\\u061c\\u2028");
  // Overlong sequences, truncated ones and surrogates are not valid UTF-8.
  EXPECT_EQ(present::printable("\x9b\xC0\x80\xED\xA0\x80\xE2\x80"), "\\x9b\\xc0\\x80\\xed\\xa0\\x80\\xe2\\x80");
}

TEST(Shortened, keeps_the_end_and_whole_characters) {
  EXPECT_EQ(shortened("scope/conv", 10), "scope/conv");
  EXPECT_EQ(shortened("scope/conv", 5), "…conv");
  EXPECT_EQ(shortened("ääää", 3), "…ää");
}

TEST(Wrap, a_word_that_is_too_long_stays_whole) {
  EXPECT_EQ(wrap("a verylongword b", 5), (std::vector<std::string>{"a", "verylongword", "b"}));
  EXPECT_EQ(wrap("a b\nc", 9), (std::vector<std::string>{"a b", "c"}));
}

TEST(Text, sizes_and_counts) {
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(712740), "712.7 kB");
  EXPECT_EQ(bytes_text(999'960), "1.0 MB");
  EXPECT_EQ(bytes_text(3'000'000'000), "3.0 GB");
  EXPECT_EQ(count_text(1, "node"), "1 node");
  EXPECT_EQ(count_text(0, "node"), "0 nodes");
  EXPECT_EQ(count_text(2, "entry", "entries"), "2 entries");
}

}  // namespace
}  // namespace graft::cli
