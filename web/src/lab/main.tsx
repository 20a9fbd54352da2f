import "./lab.css";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { needsToken } from "../shared/http.ts";
import { Empty, Loading } from "../shared/notices.tsx";
import { mount, PageHead } from "../shared/page.tsx";
import { Browse } from "./browse.tsx";
import type { Live } from "./live.ts";
import { counts } from "./live.ts";
import type { Document } from "./session.ts";
import { documents, failure, live, open, plan } from "./session.ts";
import { Sweep } from "./sweep.tsx";
import { Watch } from "./watch.tsx";

function Page() {
  const chosen = useSignal(0);
  const all = documents.value ?? [];
  const shown = all[chosen.value];
  const runs = live.value;
  useEffect(() => {
    document.title = titleOf(shown?.scenario, runs);
  }, [shown?.scenario, runs]);
  return (
    <div class="lab">
      <PageHead
        title={shown?.scenario ?? "MSTCP lab"}
        subtitle={shown ? `${plan.value ? "current runs" : "results"}, engine ${shown.engine}` : ""}
      >
        {all.length > 1 ? (
          <select
            aria-label="Results"
            value={String(chosen.value)}
            onChange={(event) => {
              chosen.value = Number(event.currentTarget.value);
            }}
          >
            {all.map((each, index) => (
              <option key={index} value={String(index)}>
                {each.source}
              </option>
            ))}
          </select>
        ) : null}
      </PageHead>
      <main>
        <Content shown={shown} index={chosen.value} />
      </main>
    </div>
  );
}

/** The title of the tab: with how far the runs are. */
function titleOf(scenario: string | undefined, runs: Live | null): string {
  const name = scenario === undefined ? "MSTCP lab" : `${scenario} – MSTCP lab`;
  if (!runs) return name;
  const byState = counts(runs);
  return `${byState.valid + byState.invalid + byState.failed}/${runs.runs.size} ${name}`;
}

function Content({ shown, index }: { shown: Document | undefined; index: number }) {
  if (needsToken.value)
    return (
      <Empty title="The address lacks its token">
        Open the whole address that mstcp-lab printed, with what comes after the #. An address of an earlier start does
        not work any more.
      </Empty>
    );
  if (failure.value)
    return (
      <Empty title="The results cannot be read">
        {failure.value}. Start mstcp-lab again and open the address that it prints.
      </Empty>
    );
  if (!shown) return <Loading what="results" />;
  if (shown.kind === "sweep") return <Sweep overview={shown} />;
  return (
    <>
      {plan.value ? <Watch network={shown.network} /> : null}
      <Browse key={index} overview={shown} index={index} />
    </>
  );
}

void open();
mount(<Page />);
