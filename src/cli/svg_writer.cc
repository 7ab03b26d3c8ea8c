#include "cli/svg_writer.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace paceline {
namespace {

// XML 1.0, production Char: of the control characters only tab and line ends, no U+FFFE and U+FFFF.
bool is_xml_character(char32_t c) {
  if (c < 0x20) return c == '\t' || c == '\n' || c == '\r';
  return c != 0xFFFE && c != 0xFFFF;
}

void append_escaped(std::string& out, char32_t c) {
  switch (c) {
    case '&':
      out += "&amp;";
      return;
    case '<':
      out += "&lt;";
      return;
    case '>':
      out += "&gt;";
      return;
    case '"':
      out += "&quot;";
      return;
    case '\'':
      out += "&#39;";
      return;
    default:
      append_utf8(out, is_xml_character(c) ? c : kReplacementCharacter);
  }
}

std::string point_list(const std::vector<SvgPoint>& points) {
  std::string list;
  for (const SvgPoint& point : points) {
    if (!list.empty()) list += ' ';
    list += svg_number(point.x) + ',' + svg_number(point.y);
  }
  return list;
}

}  // namespace

std::string xml_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const DecodedCodePoint decoded = decode_utf8(text);
    append_escaped(out, decoded.code_point);
    text.remove_prefix(decoded.size);
  }
  return out;
}

std::string svg_number(double value) {
  std::string digits = fmt::format("{:.2f}", value);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

SvgWriter::SvgWriter(double width, double height, std::string_view head) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\">\n{2}\n",
      svg_number(width), svg_number(height), head);
}

void SvgWriter::open_group(std::string_view css_class) {
  out_ += fmt::format("<g class=\"{}\">\n", css_class);
  ++open_groups_;
}

void SvgWriter::close_group() {
  out_ += "</g>\n";
  --open_groups_;
}

void SvgWriter::tooltip(std::string_view text) {
  out_ += fmt::format("<title>{}</title>\n", xml_escape(text));
}

void SvgWriter::rectangle(std::string_view css_class, const SvgBox& box, double radius) {
  const std::string round = radius > 0 ? fmt::format(" rx=\"{}\"", svg_number(radius)) : "";
  out_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>\n",
                      css_class, svg_number(box.x), svg_number(box.y), svg_number(box.width),
                      svg_number(box.height), round);
}

void SvgWriter::line(std::string_view css_class, SvgPoint from, SvgPoint to) {
  out_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", css_class,
                      svg_number(from.x), svg_number(from.y), svg_number(to.x), svg_number(to.y));
}

void SvgWriter::circle(std::string_view css_class, SvgPoint center, double radius) {
  out_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n", css_class,
                      svg_number(center.x), svg_number(center.y), svg_number(radius));
}

void SvgWriter::text(std::string_view css_class, SvgPoint at, std::string_view text) {
  out_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", css_class,
                      svg_number(at.x), svg_number(at.y), xml_escape(text));
}

void SvgWriter::area(std::string_view css_class, const std::vector<SvgPoint>& edge,
                     const std::vector<SvgPoint>& back) {
  out_ += fmt::format("<polygon class=\"{}\" points=\"{} {}\"/>\n", css_class, point_list(edge),
                      point_list(back));
}

void SvgWriter::outline(std::string_view css_class, const std::vector<SvgPoint>& points) {
  out_ += fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", css_class, point_list(points));
}

std::string SvgWriter::finish() {
  while (open_groups_ > 0) close_group();
  return std::move(out_) + "</svg>\n";
}

}  // namespace paceline
