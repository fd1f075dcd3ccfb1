// What the page is about: the audit as its JSON says it, and every example with its flip.
const content = JSON.parse(find("#content").textContent);
const {audit, examples, table} = content;
const infinite = value => value === null || value === undefined ? Infinity : value;

// What is proved and what flips, of every audited example; no more is known of one that was not certified.
function enclosures(found) {
  const weak = found.vulnerability, proofs = weak.certified;
  const known = weak.examples.map(example => ({example, lower: 0, upper: Infinity, status: "open"}));
  weak.free.rows.forEach((row, place) => { known[row].upper = infinite(weak.free.norms[place]); });
  known.forEach(each => { if (each.upper === 0) each.status = "error"; });
  if (proofs) proofs.rows.forEach((row, place) => {
    const one = known[row];
    one.lower = infinite(proofs.lower[place]);
    one.upper = Math.min(one.upper, infinite(proofs.upper[place]));
    one.status = proofs.status[place];
  });
  return known;
}

const known = enclosures(audit);
known.forEach((each, row) => {
  each.row = row;
  each.label = String(table.label[row]);
  each.flipped = examples.flipped[row] ?? null;
  each.allowed = audit.limit ? audit.limit.radii[row] : null;
  each.share = each.allowed > 0 ? each.upper / each.allowed : null;
});
const places = new Map(examples.pixels ? examples.pixels.rows.map((row, place) => [row, place]) : []);
const paths = new Map(examples.paths.rows.map((row, place) => [row, place]));
