// The expected values are Python 3.11's.
#include <gtest/gtest.h>

#include "tests/chat/rendering.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

TEST(PythonString, CaseAndClassesOfCharacters) {
  expect_values({
      {"'Hello World'.upper() ~ 'Hello World'.lower() ~ 'hello wORLD'.title() ~ "
       "'hELLO'.capitalize() ~ 'Hello'.swapcase()",
       "HELLO WORLDhello worldHello WorldHellohELLO"},
      {"'straße'.upper() ~ ' ' ~ 'ß'.title() ~ ' ' ~ 'ŉ ﬁ'.upper() ~ ' ' ~ 'ǆ'.title() ~ ' ' ~ "
       "'ǆ'.upper()",
       "STRASSE Ss ʼN FI ǅ Ǆ"},
      {"'ΌΔΟΣ ΟΔΟΣ'.lower() ~ ' ' ~ 'Σ'.lower() ~ ' ' ~ 'ΑΣ.Α'.lower() ~ ' ' ~ 'ΟΔΟΣ'.title() ~ ' "
       "' ~ 'ΟΔΟΣ'.capitalize()",
       "όδος οδος σ ασ.α Οδος Οδος"},
      {"'İI'.lower() ~ ' ' ~ 'ΐ'.upper() ~ ' ' ~ 'ᾳ'.title() ~ ' ' ~ 'ᾳ'.upper()",
       "i\u0307i Ι\u0308\u0301 ᾼ ΑΙ"},
      {"'Straße ΑΣ'.casefold()", "strasse ασ"},
      {R"("they're bill's friends".title() ~ ' ' ~ 'a1b 2c'.title())",
       "They'Re Bill'S Friends A1B 2C"},
      {"['AB1'.isupper(), 'A1b'.isupper(), '12'.isupper(), 'ab1'.islower(), 'aB'.islower(), "
       "''.islower()]",
       "[True, False, False, True, False, False]"},
      {R"(['Ab Cd'.istitle(), 'AB'.istitle(), 'A b'.istitle(), "It'S".istitle(), ''.istitle()])",
       "[True, False, False, True, False]"},
      {"['abé日'.isalpha(), 'a1'.isalpha(), ''.isalpha(), 'a1é'.isalnum(), 'a b'.isalnum(), "
       "'a_'.isalnum()]",
       "[True, False, False, True, False, False]"},
      {"['12'.isdigit(), '²'.isdigit(), '½'.isdigit(), '٣'.isdigit(), '1.5'.isdigit(), "
       "''.isdigit()]",
       "[True, True, False, True, False, False]"},
      {"['12'.isdecimal(), '²'.isdecimal(), '٣'.isdecimal(), '½'.isnumeric(), '三'.isnumeric(), "
       "'Ⅷ'.isnumeric(), '-1'.isnumeric()]",
       "[True, False, True, True, True, True, False]"},
      {R"([' \t\n'.isspace(), ''.isspace(), 'a '.isspace(), '\u3000\u00a0'.isspace(), '\u200b'.isspace()])",
       "[True, False, False, True, False]"},
      {R"(['abc'.isascii(), 'é'.isascii(), ''.isascii(), 'a b'.isprintable(), 'a\n'.isprintable(), ''.isprintable()])",
       "[True, False, True, True, False, True]"},
  });
}

TEST(PythonString, StripSplitAndJoin) {
  expect_values({
      {R"(['  a b '.strip(), '  a '.lstrip(), ' a  '.rstrip(), '\u3000a\u00a0'.strip(), ''.strip()])",
       "['a b', 'a ', ' a', 'a', '']"},
      {"['xxaxx'.strip('x'), 'abcba'.strip('ab'), 'abcba'.lstrip('ab'), 'abcba'.rstrip('ab'), "
       "'éaé'.strip('é'), ' a '.strip(none), 'aXa'.strip('')]",
       "['a', 'c', 'cba', 'abc', 'a', 'a', 'aXa']"},
      {R"(['a b  c'.split(), ' a b '.split(), ''.split(), '   '.split(), 'a\tb\nc'.split()])",
       "[['a', 'b', 'c'], ['a', 'b'], [], [], ['a', 'b', 'c']]"},
      {"['a,b,,c'.split(','), ''.split(','), 'abc'.split('bc'), 'a--b---c'.split('--')]",
       "[['a', 'b', '', 'c'], [''], ['a', ''], ['a', 'b', '-c']]"},
      {"['a b c d'.split(none, 1), ' a b  c '.split(none, 1), 'a b c'.rsplit(none, 1), ' a b  c "
       "'.rsplit(none, 1), 'a b'.split(none, 0)]",
       "[['a', 'b c d'], ['a', 'b  c '], ['a b', 'c'], [' a b', 'c'], ['a b']]"},
      {"['a,b,c'.split(',', 1), 'a,b,c'.rsplit(',', 1), 'a,b'.split(',', 0), 'a,b'.rsplit(',', 5), "
       "'a,b'.split(sep=',', maxsplit=1)]",
       "[['a', 'b,c'], ['a,b', 'c'], ['a,b'], ['a', 'b'], ['a', 'b']]"},
      {R"(['a\nb\r\nc\rd\n'.splitlines(), 'a\n\nb'.splitlines(true), ''.splitlines(), '\n'.splitlines(), 'a\u2028b\u0085c\x0bd\x1ce'.splitlines()])",
       R"([['a', 'b', 'c', 'd'], ['a\n', '\n', 'b'], [], [''], ['a', 'b', 'c', 'd', 'e']])"},
      {"['a=b=c'.partition('='), 'abc'.partition('='), 'a=b=c'.rpartition('='), "
       "'abc'.rpartition('=')]",
       "[('a', '=', 'b=c'), ('abc', '', ''), ('a=b', '=', 'c'), ('', '', 'abc')]"},
      {"['prefix-x'.removeprefix('prefix-'), 'x'.removeprefix('y'), 'x.txt'.removesuffix('.txt'), "
       "'x'.removesuffix('')]",
       "['x', 'x', 'x', 'x']"},
      {"[','.join(['a', 'b']), ''.join([]), '-'.join('abc'), ', '.join({'k': 1, 'l': 2})]",
       "['a,b', '', 'a-b-c', 'k, l']"},
  });
}

TEST(PythonString, SearchAndReplace) {
  expect_values({
      {"['hello'.find('l'), 'hello'.rfind('l'), 'hello'.find('z'), 'hello'.find(''), "
       "'hello'.rfind('')]",
       "[2, 3, -1, 0, 5]"},
      {"['hello'.find('l', 3), 'hello'.find('l', 4), 'hello'.find('h', -2), 'hello'.rfind('l', 0, "
       "3), 'héllo'.find('l'), 'hello'.find('', 9)]",
       "[3, -1, -1, 2, 2, -1]"},
      {"['hello'.index('l'), 'hello'.rindex('l'), 'abcabc'.count('a'), 'aaaa'.count('aa'), "
       "'abc'.count(''), 'abcabc'.count('a', 1), ''.count('', 1)]",
       "[2, 3, 2, 2, 4, 1, 0]"},
      {"['hello'.startswith('he'), 'hello'.startswith(('x', 'h')), 'hello'.startswith('l', 2), "
       "'hello'.startswith(''), 'hello'.startswith('', 9), 'hello'.startswith(())]",
       "[True, True, True, True, False, False]"},
      {"['hello'.endswith('lo'), 'hello'.endswith(('x', 'o')), 'hello'.endswith('l', 0, -1), "
       "'hello'.endswith('lo', 4), 'héé'.endswith('é', 2, 3)]",
       "[True, True, True, False, True]"},
      {"['aXbX'.replace('X', '-'), 'aXbX'.replace('X', '-', 1), 'ab'.replace('', '-'), "
       "'ab'.replace('', '-', 2), 'é'.replace('', '.'), 'aaa'.replace('aa', 'b'), 'a'.replace('a', "
       "'b', -1)]",
       "['a-b-', 'a-bX', '-a-b-', '-a-b', '.é.', 'ba', 'b']"},
  });
}

TEST(PythonString, Pad) {
  expect_values({
      {"['ab'.center(5, '*'), 'ab'.center(6, '*'), 'abc'.center(6, '*'), 'abc'.center(2), "
       "'é'.center(3, '日')]",
       "['**ab*', '**ab**', '*abc**', 'abc', '日é日']"},
      {"['ab'.ljust(4) ~ '|', 'ab'.rjust(4), 'ab'.ljust(4, '.'), 'ab'.rjust(4, '.'), "
       "'ab'.ljust(1)]",
       "['ab  |', '  ab', 'ab..', '..ab', 'ab']"},
      {"['42'.zfill(5), '-42'.zfill(5), '+42'.zfill(5), '--1'.zfill(5), ''.zfill(2), "
       "'42'.zfill(1), 'é'.zfill(3)]",
       "['00042', '-0042', '+0042', '-00-1', '00', '42', '00é']"},
      {R"(['a\tb'.expandtabs(), 'a\tb'.expandtabs(4), '\t|\t|'.expandtabs(2), 'ab\tc\n\td'.expandtabs(4), 'a\tb'.expandtabs(0)])",
       R"(['a       b', 'a   b', '  | |', 'ab  c\n    d', 'ab'])"},
  });
}

TEST(PythonString, WhatPythonRefuses) {
  for (const char* expression :
       {"'a'.index('b')", "'a'.rindex('b')", "'a b'.split('')", "'a'.partition('')",
        "'a'.center(5, 'xy')", "'a'.center('5')", "','.join([1])", "'a'.startswith(1)",
        "'a'.startswith(['a'])", "'a'.strip(1)", "'a'.replace('a')", "'a'.find(1)", "'a'.upper(1)",
        "'a'.nope()", "'a'.zfill()"}) {
    SCOPED_TRACE(expression);
    expect_error(ErrorCode::invalid, {"test:1:"}, [&] { render(printed(expression)); });
  }
}

}  // namespace
}  // namespace paceline
