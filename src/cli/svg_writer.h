// SvgWriter writes SVG elements: closed, escaped and with short numbers, whatever it is given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct SvgPoint {
  double x = 0;
  double y = 0;
};

struct SvgBox {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double middle() const { return y + height / 2; }
};

// Classes are names of our own, so they are written as they stand; texts are escaped.
class SvgWriter {
 public:
  // `head` is markup: title, style and definitions.
  SvgWriter(double width, double height, std::string_view head);

  void open_group(std::string_view css_class);
  void close_group();
  // What a browser shows when the pointer rests on the group just opened.
  void tooltip(std::string_view text);

  void rectangle(std::string_view css_class, const SvgBox& box, double radius = 0);
  void line(std::string_view css_class, SvgPoint from, SvgPoint to);
  void circle(std::string_view css_class, SvgPoint center, double radius);
  void text(std::string_view css_class, SvgPoint at, std::string_view text);
  // A closed area between `edge`, left to right, and `back`, right to left.
  void area(std::string_view css_class, const std::vector<SvgPoint>& edge,
            const std::vector<SvgPoint>& back);
  void outline(std::string_view css_class, const std::vector<SvgPoint>& points);

  // Closes the groups still open, then the document.
  std::string finish();

 private:
  std::string out_;
  int open_groups_ = 0;
};

// `text` within an element or an attribute. What XML can't hold (control characters, ill-formed
// UTF-8) is U+FFFD.
std::string xml_escape(std::string_view text);

// At most two decimals, none of them zero at the end.
std::string svg_number(double value);

}  // namespace paceline
