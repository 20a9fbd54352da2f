import "../shared/theme.css";
import { render } from "preact";
import { applyTheme } from "../shared/theme.ts";

applyTheme();
const root = document.getElementById("page");
if (root) {
  root.replaceChildren();
  render(<h1>MSTCP controller</h1>, root);
}
