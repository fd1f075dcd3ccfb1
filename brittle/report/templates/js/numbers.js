// The one formatter of the pages, as in report/numbers.py.
const raised = text => text.replace(/./g, each => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(each)]);

const short = text => text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;

function fixed(value, places) {
  const text = short(value.toFixed(places));
  return text === "-0" ? "0" : text;
}

function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  const size = Math.abs(value);
  if (size === 0) return "0";
  const exponent = Number(size.toExponential(digits - 1).split("e")[1]);
  if (size >= 1e-3 && size < 1e6) return fixed(value, Math.max(0, digits - 1 - exponent));
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const shown = short(mantissa);
  return ({"1": "", "-1": "-"}[shown] ?? shown + "·") + "10" + raised(String(Number(power)));
}

function share(value, digits = 1) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const percent = 100 * value, plain = Math.abs(percent) >= 1 && Math.abs(percent) < 1e6;
  return (plain ? fixed(percent, digits) : number(percent, 2)) + "%";
}
