import "./controller.css";
import { mount } from "../shared/page.tsx";
import { App } from "./app.tsx";
import { start } from "./store.ts";

mount(<App />);
start();
