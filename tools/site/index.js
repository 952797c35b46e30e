// The start page of the static site: its colours, the projector view, and the help.
import { setUpLooks } from "../../service/page/shared/looks.js";

setUpLooks({});
