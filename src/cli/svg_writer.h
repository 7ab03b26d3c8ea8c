// SvgWriter writes well-formed SVG: elements are closed, texts escaped, numbers short.
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

// CSS classes are written verbatim; texts are escaped.
class SvgWriter {
 public:
  // `head` is markup: title, style and definitions.
  SvgWriter(double width, double height, std::string_view head);

  void open_group(std::string_view css_class);
  void close_group();
  // The tooltip of the group just opened.
  void tooltip(std::string_view text);

  void rectangle(std::string_view css_class, const SvgBox& box, double radius = 0);
  void line(std::string_view css_class, SvgPoint from, SvgPoint to);
  void circle(std::string_view css_class, SvgPoint center, double radius);
  void text(std::string_view css_class, SvgPoint at, std::string_view text);
  // A closed area with the outline `edge`, left to right, then `back`, right to left.
  void area(std::string_view css_class, const std::vector<SvgPoint>& edge,
            const std::vector<SvgPoint>& back);
  void outline(std::string_view css_class, const std::vector<SvgPoint>& points);

  // Closes the groups still open, then the document.
  std::string finish();

 private:
  std::string out_;
  int open_groups_ = 0;
};

// Escapes `text` for an element or an attribute. Control characters and ill-formed UTF-8, which XML
// can't hold, become U+FFFD.
std::string xml_escape(std::string_view text);

// At most two decimals, without trailing zeros.
std::string svg_number(double value);

}  // namespace paceline
