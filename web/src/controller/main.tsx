import "../shared/theme.css";
import "../shared/layout.css";
import "./controller.css";
import { render } from "preact";
import { applyTheme } from "../shared/theme.ts";
import { App } from "./app.tsx";
import { start } from "./store.ts";

applyTheme();
const root = document.getElementById("page");
if (root) {
  root.replaceChildren();
  render(<App />, root);
  start();
}
